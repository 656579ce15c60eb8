#include <limits>

#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

const Tolerance kSums{2e-5, 2e-5};

void add_fold(std::vector<OpCase>& cases, std::string name, std::vector<CaseInput> inputs, Build build,
              Tolerance tolerance = kSums, Tolerance gradient_tolerance = {1e-4, 2e-4}) {
  cases.push_back({std::move(name), std::move(inputs), std::move(build), tolerance, gradient_tolerance});
}

struct Folding {
  const char* name;
  Tensor (*fold)(const Tensor&, const Axes&, bool);
};

void add_reductions(std::vector<OpCase>& cases) {
  const auto spread = [](const Tensor& x, const Axes& axes, bool keep) { return variance(x, axes, keep); };
  const Folding foldings[] = {{"sum", &imprint::sum},
                              {"mean", &imprint::mean},
                              {"max", &imprint::max},
                              {"min", &imprint::min},
                              {"variance", spread}};
  for (const Folding& folding : foldings) {
    const auto fold = folding.fold;
    const std::string name = folding.name;
    add_fold(cases, name + "/rows", {{{3, 129}}}, [fold](Inputs in) { return fold(in[0], {1}, false); });
    add_fold(cases, name + "/columns", {{{127, 3}}}, [fold](Inputs in) { return fold(in[0], {0}, true); });
    add_fold(cases, name + "/outer_and_inner", {{{3, 4, 5}}}, [fold](Inputs in) {
      return fold(in[0], {0, -1}, false);
    });
    add_fold(cases, name + "/middle", {{{3, 7, 5}}}, [fold](Inputs in) { return fold(in[0], {1}, false); });
    add_fold(cases, name + "/all", {{{5, 7, 3}}}, [fold](Inputs in) { return fold(in[0], {}, false); });
    add_fold(cases, name + "/computed", {{{3, 5}}, {{5}}},
             [fold](Inputs in) { return fold(tanh(in[0] * in[1]), {1}, true) * in[0]; });
    add_fold(cases, name + "/no_rows", {{{0, 5}}}, [fold](Inputs in) { return fold(in[0], {1}, false); });
    add_fold(cases, name + "/transposed", {{{6, 5}}},
             [fold](Inputs in) { return fold(transpose(in[0]), {1}, false); });
  }
  add_fold(cases, "sum/long", {{{3, 5001}, DType::float32, 0, 1}}, [](Inputs in) { return sum(in[0]); });
  add_fold(cases, "sum/nothing", {{{3, 0}}}, [](Inputs in) { return sum(in[0], {1}); });
  add_fold(cases, "mean/nothing", {{{3, 0}}}, [](Inputs in) { return mean(in[0], {1}); });
  add_fold(cases, "variance/nothing", {{{3, 0}}}, [](Inputs in) { return variance(in[0], {1}); });
  add_fold(cases, "variance/of_one", {{{3, 1}}}, [](Inputs in) { return variance(in[0], {1}); });
  for (std::size_t back = 1; back <= 3; ++back) cases[cases.size() - back].differentiable = false;
  add_fold(cases, "sum/nothing_infinite", {}, [](Inputs) { return sum(full({3, 0}, __builtin_inf()), {1}); });
  add_fold(cases, "max/one", {{{3, 1}}}, [](Inputs in) { return max(in[0], {1}); });
  add_fold(cases, "prod/rows", {{{3, 7}, DType::float32, 0.5, 1.5}},
           [](Inputs in) { return prod(in[0], {1}); });
  add_fold(cases, "prod/outer_and_inner", {{{3, 2, 4}, DType::float32, -1.5, 1.5, {0}}}, [](Inputs in) {
    return prod(in[0], {0, 2});
  });
  add_fold(cases, "prod/nothing", {{{3, 0}}}, [](Inputs in) { return prod(in[0], {1}); });
  add_fold(cases, "prod/zeros", {{{4, 5}, DType::float32, -1.5, 1.5, {0}}}, [](Inputs in) {
    // No zero, one zero, and two zeros in a row of factors.
    const Tensor mask = Tensor::from({1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0}, {4, 5});
    return prod(in[0] * mask, {1});
  });
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    const std::string name = kind;
    const auto fold = name == "sum"    ? &imprint::sum
                      : name == "prod" ? &imprint::prod
                      : name == "max"  ? &imprint::max
                                       : &imprint::min;
    add_fold(cases, name + "/int32", {{{3, 7}, DType::int32, -9, 9}},
             [fold](Inputs in) { return fold(in[0], {1}, false); });
    cases.back().differentiable = false;
  }
  add_fold(cases, "variance/biased", {{{3, 5}}}, [](Inputs in) { return variance(in[0], {1}, false, 0); });
}

void add_choices(std::vector<OpCase>& cases) {
  const auto add_choice = [&](const char* name, std::vector<CaseInput> inputs, Build build) {
    cases.push_back({name, std::move(inputs), std::move(build), {}, {}, false});
  };
  add_choice("argmax/rows", {{{3, 129}}}, [](Inputs in) { return argmax(in[0], 1); });
  add_choice("argmax/columns", {{{127, 3}}}, [](Inputs in) { return argmax(in[0], 0, true); });
  add_choice("argmax/ties", {{{9, 7}, DType::int32, 0, 2}},
             [](Inputs in) { return argmax(cast(in[0], DType::float32), 1); });
  add_choice("argmax/int32", {{{9, 7}, DType::int32, 0, 2}}, [](Inputs in) { return argmax(in[0], 1); });
  add_choice("argmax/one", {{{3, 1}}}, [](Inputs in) { return argmax(in[0], 1); });
  add_choice("argmin/ties", {{{9, 7}, DType::int32, 0, 2}}, [](Inputs in) { return argmin(in[0], -1); });
  add_choice("argmin/rows", {{{2, 3, 5}}}, [](Inputs in) { return argmin(in[0], 1); });
  add_choice("argmax/axes", {{{3, 5, 7}}}, [](Inputs in) { return argmax(in[0], {0, 2}); });
  add_choice("argmax/all", {{{3, 43}}}, [](Inputs in) { return argmax(in[0]); });
  for (const bool largest : {true, false})  // the first NaN, if there is one
    add_choice(largest ? "argmax/nan" : "argmin/nan", {{{9, 65}}}, [largest](Inputs in) {
      const Tensor x = where(in[0] * in[0] < 0.002f, std::numeric_limits<float>::quiet_NaN(), in[0]);
      return largest ? argmax(x, 1) : argmin(x, 1);
    });
  add_choice("argmin/axes", {{{2, 9, 4}, DType::int32, 0, 2}}, [](Inputs in) {
    return argmin(in[0], {-1, 1}, true);
  });
  add_choice("any/rows", {{{9, 3}, DType::boolean}}, [](Inputs in) { return any(in[0], {1}); });
  add_choice("all/rows", {{{9, 3}, DType::boolean}}, [](Inputs in) { return all(in[0], {1}); });
  add_choice("any/nothing", {{{3, 0}, DType::boolean}}, [](Inputs in) {
    return stack({any(in[0], {1}), all(in[0], {1})}, 0);
  });
  add_choice("any/floats", {{{9}, DType::int32, 0, 1}},
             [](Inputs in) { return any(cast(in[0], DType::float32)); });
}

void add_products(std::vector<OpCase>& cases) {
  const auto product = [&](const std::string& name, const Shape& a, const Shape& b) {
    add_fold(cases, "matmul/" + name, {{a}, {b}}, [](Inputs in) { return matmul(in[0], in[1]); },
             {5e-5, 5e-5}, {2e-4, 2e-4});
  };
  product("3x5_5x4", {3, 5}, {5, 4});
  product("1x1", {1, 1}, {1, 1});
  product("127x33_33x129", {127, 33}, {33, 129});
  product("129x127_127x5", {129, 127}, {127, 5});
  product("16x64_64x64", {16, 64}, {64, 64});
  product("no_rows", {0, 5}, {5, 4});
  product("no_depth", {3, 0}, {0, 4});
  product("batch", {3, 4, 5}, {3, 5, 2});
  product("batch_of_rows", {2, 3, 4, 5}, {5, 2});
  product("broadcast_left", {4, 5}, {3, 5, 2});
  product("broadcast_both", {2, 1, 4, 5}, {3, 5, 2});
  // In tiles: whole tiles, tiles cut in every direction, one term, transposed and strided operands, several
  // products.
  product("tiles_128x128_64", {128, 64}, {64, 128});
  product("tiles_129x127_65", {129, 65}, {65, 127});
  product("tiles_one_term", {1025, 1}, {1, 1024});
  product("tiles_batch", {5, 66, 60}, {5, 60, 68});
  product("tiles_broadcast_left", {65, 129}, {3, 129, 64});
  product("tiles_broadcast_both", {2, 1, 65, 63}, {3, 63, 66});
  product("vectors", {5}, {5});
  product("vector_matrix", {5}, {5, 4});
  product("matrix_vector", {4, 5}, {5});
  product("batch_vector", {3, 4, 5}, {5});
  add_fold(cases, "matmul/transposed_left", {{{5, 33}}, {{5, 17}}},
           [](Inputs in) { return matmul(transpose(in[0]), in[1]); }, {5e-5, 5e-5});
  add_fold(cases, "matmul/transposed_right", {{{17, 33}}, {{9, 33}}},
           [](Inputs in) { return matmul(in[0], transpose(in[1])); }, {5e-5, 5e-5});
  add_fold(cases, "matmul/prologue_epilogue", {{{17, 33}}, {{33, 9}}, {{9}}},
           [](Inputs in) { return relu(matmul(tanh(in[0]), in[1]) + in[2]); }, {5e-5, 5e-5}, {2e-4, 2e-4});
  add_fold(cases, "matmul/two_layers", {{{17, 5}}, {{5, 33}}, {{33}}, {{33, 3}}, {{3}}},
           [](Inputs in) { return matmul(tanh(matmul(in[0], in[1]) + in[2]), in[3]) + in[4]; }, {1e-4, 5e-5},
           {5e-4, 5e-4});
  add_fold(cases, "matmul/tiles_thin", {{{16, 4099}}, {{4099, 17}}},
           [](Inputs in) { return matmul(in[0], in[1]); }, {5e-4, 5e-5}, {2e-4, 2e-4});
  add_fold(cases, "matmul/tiles_transposed", {{{132, 68}}, {{124, 132}}},
           [](Inputs in) { return matmul(transpose(in[0]), transpose(in[1])); }, {1e-4, 5e-5}, {3e-4, 2e-4});
  // Heads that lie apart are loaded in fours, along terms and, by the gradient, along rows.
  add_fold(cases, "matmul/tiles_of_heads", {{{2, 3, 66, 20}}, {{60, 136}}},
           [](Inputs in) {
             return matmul(reshape(permute(in[0], {0, 2, 1, 3}), {132, 60}), in[1]);
           },
           {1e-4, 5e-5}, {3e-4, 2e-4});
  add_fold(cases, "matmul/tiles_ragged_transposed", {{{131, 67}}, {{127, 131}}},
           [](Inputs in) { return matmul(transpose(in[0]), transpose(in[1])); }, {1e-4, 5e-5}, {3e-4, 2e-4});
  add_fold(cases, "matmul/tiles_slices", {{{2, 132, 132}}, {{264, 64}}},
           [](Inputs in) { return matmul(slice(in[0], 1, 4, 132), slice(in[1], 0, 0, 264, 2)); },
           {1e-4, 5e-5}, {3e-4, 2e-4});
  add_fold(cases, "matmul/tiles_prologue_epilogue", {{{129, 68}}, {{68, 132}}, {{132}}, {{129, 1}}},
           [](Inputs in) { return silu(matmul(tanh(in[0]), in[1]) + in[2]) * in[3]; }, {1e-4, 5e-5},
           {3e-4, 3e-4});  // no kinks: with thousands of elements, differences would hit some
  add_fold(cases, "matmul/tiles_residual", {{{3, 65, 65}}, {{65, 65}}, {{3, 65, 65}}},
           [](Inputs in) { return gelu(matmul(in[0], in[1])) + in[2]; }, {1e-4, 5e-5}, {3e-4, 3e-4});
  add_fold(cases, "matmul/strided", {{{8, 12}}, {{6, 5}}},
           [](Inputs in) { return matmul(slice(in[0], 1, 0, 12, 2), in[1]); }, {5e-5, 5e-5});
}

// Few outputs of very many terms: partial products of stretches of the terms, and a shorter last stretch.
void add_deep_products(std::vector<OpCase>& cases) {
  const auto deep = [&](const std::string& name, const Shape& a, const Shape& b, Tensor (*apply)(Inputs in)) {
    add_fold(cases, "matmul/deep_" + name, {{a}, {b}}, apply, {2e-3, 5e-5});
    cases.back().differentiable = false;  // the same products with fewer terms are
  };
  deep("batch", {2, 40, 1030}, {2, 1030, 24}, [](Inputs in) { return matmul(in[0], in[1]); });
  deep("weight_gradient", {4100, 36}, {4100, 20}, [](Inputs in) { return matmul(transpose(in[0]), in[1]); });
  deep("odd_weight_gradient", {4099, 37}, {4099, 19},
       [](Inputs in) { return matmul(transpose(in[0]), in[1]); });
  deep("transposed_right", {33, 2051}, {17, 2051}, [](Inputs in) { return matmul(in[0], transpose(in[1])); });
  deep("prologue_epilogue", {1048, 36}, {1048, 40},
       [](Inputs in) { return silu(matmul(transpose(tanh(in[0])), sin(in[1]))); });
  deep("float16", {2200, 24}, {2200, 40},
       [](Inputs in) { return matmul(transpose(cast(in[0], DType::float16)), cast(in[1], DType::float16)); });
  deep("norm", {4096, 24}, {4096, 32}, [](Inputs in) {
    const Tensor gradient = matmul(transpose(in[0]), in[1]);
    return gradient * rsqrt(sum(square(gradient)));
  });
}

// Operands rounded to 16 bits: sums are of the rounded values, wherever the kernel computes them.
void add_narrow_products(std::vector<OpCase>& cases) {
  for (const DType narrow : {DType::float16, DType::bfloat16}) {
    const auto narrow_product = [&](const std::string& name, const Shape& a, const Shape& b,
                                    bool transpose_left, bool transpose_right) {
      add_fold(cases, "matmul/" + std::string(dtype_name(narrow)) + "_" + name, {{a}, {b}},
               [=](Inputs in) {
                 const Tensor left = cast(in[0], narrow), right = cast(in[1], narrow);
                 return matmul(transpose_left ? transpose(left) : left,
                               transpose_right ? transpose(right) : right);
               },
               {5e-4, 1e-4}, {1e-1, 2e-2});
    };
    narrow_product("small", {5, 7}, {7, 3}, false, false);
    narrow_product("whole", {128, 64}, {64, 128}, false, false);
    narrow_product("ragged_eights", {136, 72}, {72, 152}, false, false);
    narrow_product("transposed", {96, 136}, {120, 96}, true, true);
    narrow_product("ragged", {129, 65}, {65, 127}, false, false);
    narrow_product("batch", {3, 72, 64}, {3, 64, 88}, false, false);
    add_fold(cases, "matmul/" + std::string(dtype_name(narrow)) + "_epilogue",
             {{{136, 72}}, {{72, 152}}, {{152}}},
             [=](Inputs in) {
               return cast(relu(matmul(cast(in[0], narrow), cast(in[1], narrow)) + in[2]), narrow);
             },
             {2e-2, 1e-2}, {2e-1, 3e-2});
    cases.back().differentiable = false;  // rounding makes it a step function
  }
}

void add_scans(std::vector<OpCase>& cases) {
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      const std::string form =
          std::string(exclusive ? "exclusive" : "inclusive") + (reverse ? "_reverse" : "");
      add_fold(cases, "cumsum/" + form, {{{3, 129}}},
               [=](Inputs in) { return cumsum(in[0], 1, exclusive, reverse); }, {1e-4, 2e-5});
      add_fold(cases, "cumsum/columns_" + form, {{{7, 3}}},
               [=](Inputs in) { return cumsum(in[0] * in[0], 0, exclusive, reverse); });
    }
  for (bool reverse : {false, true}) {
    const std::string form = reverse ? "reverse" : "forward";
    add_fold(cases, "linear_recurrence/" + form, {{{3, 129}}, {{3, 129}, DType::float32, -0.9, 0.95}},
             [=](Inputs in) { return linear_recurrence(in[0], in[1], 1, reverse); }, {1e-4, 2e-5});
    add_fold(cases, "linear_recurrence/columns_" + form, {{{7, 3}}, {{3}}},
             [=](Inputs in) {
               return linear_recurrence(in[0] * in[0], expand(in[1], {7, 3}), 0, reverse);
             },
             {1e-4, 2e-5}, {2e-4, 2e-4});
    add_fold(cases, "linear_recurrence/one_" + form, {{{3, 1}}, {{3, 1}}},
             [=](Inputs in) { return linear_recurrence(in[0], in[1], 1, reverse); });
    add_fold(cases, "linear_recurrence/nothing_" + form, {{{3, 0}}, {{3, 0}}},
             [=](Inputs in) { return linear_recurrence(in[0], in[1], 1, reverse); });
  }
  add_fold(cases, "cumsum/one", {{{3, 1}}}, [](Inputs in) { return cumsum(in[0], 1); });
  add_fold(cases, "cumsum/nothing", {{{3, 0}}}, [](Inputs in) { return cumsum(in[0], 1); });
  add_fold(cases, "cumsum/int32", {{{3, 9}, DType::int32, -9, 9}},
           [](Inputs in) { return cumsum(in[0], 1); });
  cases.back().differentiable = false;
}

}  // namespace

void add_folding_cases(std::vector<OpCase>& cases) {
  add_reductions(cases);
  add_choices(cases);
  add_products(cases);
  add_deep_products(cases);
  add_narrow_products(cases);
  add_scans(cases);
}

}  // namespace imprint::reference

#include <array>

#include "compute/tensor/composites/images.h"
#include "tests/reference/op_case.h"

namespace imprint::reference {
namespace {

using Inputs = std::span<const Tensor>;

void add(std::vector<OpCase>& cases, std::string name, std::vector<CaseInput> inputs, Build build) {
  cases.push_back({std::move(name), std::move(inputs), std::move(build)});
}

// A view alone would be a copy. Arithmetic on it also shows that a fused consumer indexes through it.
Tensor used(const Tensor& view) { return view * 2 + 1; }

void add_views(std::vector<OpCase>& cases) {
  add(cases, "reshape/3x4_to_2x6", {{{3, 4}}}, [](Inputs in) { return used(reshape(in[0], {2, -1})); });
  add(cases, "reshape/of_transpose", {{{3, 5}}}, [](Inputs in) { return reshape(transpose(in[0]), {15}); });
  add(cases, "reshape/empty", {{{0, 4}}}, [](Inputs in) { return reshape(in[0], {2, 0, 3}); });
  add(cases, "flatten/middle", {{{2, 3, 4, 5}}}, [](Inputs in) { return used(flatten(in[0], 1, 2)); });
  add(cases, "squeeze/middle", {{{3, 1, 5}}}, [](Inputs in) { return used(squeeze(in[0], 1)); });
  add(cases, "unsqueeze/last", {{{3, 5}}}, [](Inputs in) { return used(unsqueeze(in[0], -1)); });
  add(cases, "transpose/3x129", {{{3, 129}}}, [](Inputs in) { return used(transpose(in[0])); });
  add(cases, "transpose/copy", {{{3, 129}}}, [](Inputs in) { return transpose(in[0]); });
  add(cases, "permute/5_axes", {{{2, 3, 4, 1, 5}}}, [](Inputs in) {
    return used(permute(in[0], {3, 1, 4, 0, 2}));
  });
  add(cases, "expand/both", {{{3, 1}}}, [](Inputs in) { return used(expand(in[0], {2, 3, 5})); });
  add(cases, "expand/to_empty", {{{3, 1}}}, [](Inputs in) { return used(expand(in[0], {3, 0})); });
  add(cases, "slice/steps", {{{7, 9}}},
      [](Inputs in) { return used(slice(slice(in[0], 0, 1, 7, 2), 1, -2, 0, -3)); });
  add(cases, "slice/uneven_step", {{{10}}}, [](Inputs in) { return used(slice(in[0], 0, 1, 9, 3)); });
  add(cases, "slice/nothing", {{{3, 5}}}, [](Inputs in) { return used(slice(in[0], 1, 4, 2)); });
  add(cases, "narrow/columns", {{{3, 129}}}, [](Inputs in) { return used(narrow(in[0], 1, 1, 127)); });
  add(cases, "flip/both", {{{3, 5}}}, [](Inputs in) { return used(flip(flip(in[0], 0), 1)); });
  add(cases, "flip/one", {{{1}}}, [](Inputs in) { return used(flip(in[0], 0)); });
  add(cases, "window/overlap", {{{3, 11}}}, [](Inputs in) { return used(window(in[0], 1, 3, 2, 2)); });
  add(cases, "window/rows_gap", {{{11, 3}}}, [](Inputs in) { return used(window(in[0], 0, 2, 4)); });
  add(cases, "repeat/rows", {{{3, 5}}}, [](Inputs in) { return used(repeat(in[0], 0, 3)); });
  add(cases, "repeat/never", {{{3, 5}}}, [](Inputs in) { return used(repeat(in[0], 0, 0)); });
  add(cases, "reshape/int32", {{{3, 4}, DType::int32, -9, 9}}, [](Inputs in) {
    return transpose(reshape(in[0], {2, 6}));
  });
  cases.back().differentiable = false;
}

void add_joins(std::vector<OpCase>& cases) {
  add(cases, "concat/rows", {{{3, 5}}, {{1, 5}}, {{127, 5}}}, [](Inputs in) { return concat(in, 0); });
  add(cases, "concat/with_empty", {{{3, 2}}, {{3, 0}}, {{3, 4}}},
      [](Inputs in) { return used(concat(in, -1)); });
  add(cases, "concat/computed", {{{3, 2}}, {{3, 4}}}, [](Inputs in) {
    return concat({exp(in[0]), in[1] * 3, in[0]}, 1);
  });
  add(cases, "stack/middle", {{{3, 5}}, {{3, 5}}}, [](Inputs in) { return stack(in, 1); });
  add(cases, "stack/last", {{{3}}, {{3}}}, [](Inputs in) { return stack(in, -1); });
  add(cases, "split/uneven", {{{3, 5}}}, [](Inputs in) {
    const std::vector<Tensor> pieces = split(in[0], 2, 1);
    return concat({pieces[2], pieces[0] * 2, pieces[1]}, 1);
  });
  add(cases, "pad/value", {{{3, 5}}}, [](Inputs in) {
    const std::pair<std::int64_t, std::int64_t> amounts[] = {{1, 0}, {0, 2}};
    return pad(in[0], amounts, -3);
  });
  add(cases, "pad/of_product", {{{3, 5}}}, [](Inputs in) {
    const std::pair<std::int64_t, std::int64_t> amounts[] = {{2, 2}, {1, 1}};
    return used(pad(in[0] * in[0], amounts));
  });
  add(cases, "pad/empty", {{{0, 2}}}, [](Inputs in) {
    const std::pair<std::int64_t, std::int64_t> amounts[] = {{2, 1}, {0, 0}};
    return pad(in[0], amounts, 4);
  });
}

void add_indexing(std::vector<OpCase>& cases) {
  const CaseInput outside{{3, 4}, DType::int32, -2, 7};
  add(cases, "gather/columns", {{{3, 6}}, outside}, [](Inputs in) { return gather(in[0], 1, in[1]); });
  add(cases, "gather/rows", {{{6, 4}}, outside}, [](Inputs in) { return gather(in[0], 0, in[1]); });
  add(cases, "gather/computed", {{{3, 6}}, {{3, 1}, DType::int32, 0, 5}},
      [](Inputs in) { return gather(log_softmax(in[0]), -1, in[1]); });
  add(cases, "gather/nothing", {{{3, 6}}, {{3, 0}, DType::int32}},
      [](Inputs in) { return gather(in[0], 1, in[1]); });
  add(cases, "take/embedding", {{{6, 5}}, outside}, [](Inputs in) { return take(in[0], 0, in[1]); });
  add(cases, "take/middle", {{{2, 6, 3}}, {{4}, DType::int32, 0, 5}},
      [](Inputs in) { return take(in[0], 1, in[1]); });
  add(cases, "take/scalar", {{{6, 5}}, {{}, DType::int32, 0, 5}},
      [](Inputs in) { return take(in[0], 0, in[1]); });
  add(cases, "index_select/last", {{{3, 6}}, {{9}, DType::int32, 0, 5}},
      [](Inputs in) { return index_select(in[0], -1, in[1]); });
  add(cases, "scatter_add/columns", {{{3, 6}}, outside, {{3, 4}}},
      [](Inputs in) { return scatter_add(in[0], 1, in[1], in[2]); });
  add(cases, "scatter_add/rows", {{{6, 4}}, outside, {{3, 4}}},
      [](Inputs in) { return scatter_add(in[0], 0, in[1], in[2]); });
  add(cases, "scatter_add/collisions", {{{2}}, {{129}, DType::int32, 0, 1}, {{129}}},
      [](Inputs in) { return scatter_add(in[0], 0, in[1], in[2] * 2); });
  add(cases, "scatter_add/int32",
      {{{6}, DType::int32, -9, 9}, {{9}, DType::int32, 0, 5}, {{9}, DType::int32, -9, 9}},
      [](Inputs in) { return scatter_add(in[0], 0, in[1], in[2]); });
  cases.back().differentiable = false;
}

// Arithmetic rounds each result as the oracle does; where that depends on the last bit of float32, results
// are neighbours.
void add_narrow_arithmetic(std::vector<OpCase>& cases, DType narrow) {
  const double step = narrow == DType::float16 ? 1e-3 : 8e-3;
  const auto computed = [&](const std::string& what, const Shape& shape, double error, Build f) {
    cases.push_back({std::string(dtype_name(narrow)) + "/" + what,
                     {{shape}},
                     [=](Inputs in) {
                       const Tensor x = cast(in[0], narrow);
                       return cast(f(std::span(&x, 1)), DType::float32);
                     },
                     {error, error},
                     {4 * step, 4 * step}});
  };
  computed("sums_and_products", {37, 5}, 1e-6,
           [](Inputs in) { return (in[0] + in[0] * 0.3f - flip(in[0], 0)) * in[0]; });
  computed("wide", {300, 260}, 1e-6, [](Inputs in) { return in[0] * 3 - in[0] * in[0]; });
  computed("functions", {9, 33}, step, [](Inputs in) { return tanh(exp(in[0] * 0.5f) - 1.0f); });
  computed("selects", {9, 33}, 1e-6,
           [](Inputs in) { return where(in[0] > 0.5f, maximum(in[0], 0.7f), -in[0]); });
  computed("rows", {9, 700}, step, [](Inputs in) { return sum(in[0], {1}) * mean(square(in[0]), {1}); });
  computed("columns", {2100, 5}, step, [](Inputs in) { return sum(in[0], {0}) * 0.1f; });
  computed("softmax", {5, 40}, step, [](Inputs in) { return softmax(in[0] * 4.0f); });
}

// Operations that move elements without computing also move narrow floats.
void add_narrow(std::vector<OpCase>& cases) {
  for (const DType narrow : {DType::float16, DType::bfloat16}) {
    const std::string name = std::string(dtype_name(narrow)) + "/";
    const auto moved = [&](const std::string& what, const Shape& shape, Tensor (*move)(const Tensor&)) {
      cases.push_back({name + what,
                       {{shape}},
                       [=](Inputs in) { return cast(move(cast(in[0], narrow)), DType::float32); },
                       {1e-6, 1e-6},
                       {1e-6, 1e-6}});
    };
    moved("cast", {127, 3}, [](const Tensor& x) { return x; });
    moved("cast_wide", {300, 260}, [](const Tensor& x) { return x; });
    moved("transpose", {33, 65}, [](const Tensor& x) { return transpose(x); });
    moved("slice", {9, 12}, [](const Tensor& x) { return slice(x, 1, 1, 12, 2); });
    moved("pad", {3, 5}, [](const Tensor& x) {
      return pad(x, std::array<std::pair<std::int64_t, std::int64_t>, 2>{{{1, 0}, {2, 1}}}, 0.5);
    });
    moved("concat", {3, 5}, [](const Tensor& x) { return concat({x, flip(x, 1)}, 1); });
    moved("nothing", {3, 0}, [](const Tensor& x) { return x; });
    add_narrow_arithmetic(cases, narrow);
    for (const auto& [what, shape] :
         {std::pair("output", Shape{37, 3}), std::pair("output_wide", Shape{300, 261})}) {
      cases.push_back(
          {name + what, {{shape}}, [=](Inputs in) { return cast(in[0], narrow); }, {0, 0}, {0, 0}});
      cases.back().differentiable = false;
    }
  }
}

// Integers that are stored in fewer bytes, and in words of 32 bits without a sign: casts wrap, and moves keep
// the value.
void add_narrow_integers(std::vector<OpCase>& cases) {
  for (const DType narrow : {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::uint32}) {
    const std::string name = std::string(dtype_name(narrow)) + "/";
    const auto moved = [&](const std::string& what, const Shape& shape, Tensor (*move)(const Tensor&)) {
      cases.push_back({name + what,
                       {{shape, DType::int32, -70000, 70000}},
                       [=](Inputs in) { return cast(move(cast(in[0], narrow)), DType::int32); },
                       {0, 0},
                       {0, 0}});
      cases.back().differentiable = false;
    };
    moved("cast", {127, 3}, [](const Tensor& x) { return x; });
    moved("cast_wide", {300, 260}, [](const Tensor& x) { return x; });
    moved("cast_ragged", {301, 261}, [](const Tensor& x) { return x; });
    moved("transpose", {256, 260}, [](const Tensor& x) { return transpose(x); });
    moved("slice", {9, 12}, [](const Tensor& x) { return slice(x, 1, 1, 12, 2); });
    moved("pad", {3, 5}, [](const Tensor& x) {
      return pad(x, std::array<std::pair<std::int64_t, std::int64_t>, 2>{{{1, 0}, {2, 1}}}, 5);
    });
    moved("concat", {3, 5}, [](const Tensor& x) { return concat({x, flip(x, 1)}, 1); });
    moved("take", {7, 5}, [](const Tensor& x) { return take(x, 0, cast(arange(7), DType::int8)); });
    moved("nothing", {3, 0}, [](const Tensor& x) { return x; });
    const auto stored = [&](const std::string& what, const CaseInput& from, Tensor (*build)(const Tensor&)) {
      cases.push_back(
          {name + what, {from}, [=](Inputs in) { return build(cast(in[0], narrow)); }, {0, 0}, {0, 0}});
      cases.back().differentiable = false;
    };
    // The narrow value itself is an output, so that it is packed.
    stored("output", {{37, 3}, DType::int32, -70000, 70000}, [](const Tensor& x) { return x; });
    stored("output_wide", {{300, 261}, DType::int32, -70000, 70000}, [](const Tensor& x) { return x; });
    stored("from_float", {{33, 5}, DType::float32, -300, 300}, [](const Tensor& x) { return x; });
    stored("from_large_float", {{33, 5}, DType::float32, -6e9, 6e9}, [](const Tensor& x) { return x; });
    stored("from_bool", {{33, 5}, DType::boolean, 0, 1}, [](const Tensor& x) { return x; });
    stored("to_float", {{33, 5}, DType::int32, -70000, 70000},
           [](const Tensor& x) { return cast(x, DType::float32); });
    cases.back().tolerance = {0, 1e-7};
    stored("to_bool", {{33, 5}, DType::int32, -3, 3},
           [](const Tensor& x) { return cast(x, DType::boolean); });
    stored("to_half", {{33, 5}, DType::int32, -70000, 70000},
           [](const Tensor& x) { return cast(x, DType::bfloat16); });
    stored("index", {{9}, DType::int32, 0, 6},
           [](const Tensor& x) { return gather(cast(arange(9) * 3, DType::int8), 0, x); });
    stored("one_hot", {{9}, DType::int32, 0, 6}, [](const Tensor& x) { return one_hot(x, 5); });
  }
}

// int64 as pairs of words, at sizes that doubles hold.
void add_wide_integers(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& what, const Shape& shape, Tensor (*build)(const Tensor&)) {
    cases.push_back({"int64/" + what,
                     {{shape, DType::int64, -1e12, 1e12}},
                     [=](Inputs in) { return build(in[0]); },
                     {0, 1e-7},
                     {0, 0}});
    cases.back().differentiable = false;
  };
  add("output", {37, 3}, [](const Tensor& x) { return x; });
  add("add", {127, 3}, [](const Tensor& x) { return x + flip(x, 0); });
  add("multiply", {300, 26}, [](const Tensor& x) { return x * 7 - 5; });
  add("less", {33, 5}, [](const Tensor& x) { return where(x < flip(x, 1), x, -x); });
  add("to_float", {33, 5}, [](const Tensor& x) { return cast(x, DType::float32); });
  add("transpose", {25, 26}, [](const Tensor& x) { return transpose(x); });
  add("pad", {3, 5}, [](const Tensor& x) {
    return pad(x, std::array<std::pair<std::int64_t, std::int64_t>, 2>{{{1, 0}, {2, 1}}}, -5e9);
  });
  add("concat", {3, 5}, [](const Tensor& x) { return concat({x, flip(x, 1)}, 1); });
  add("take", {7, 5}, [](const Tensor& x) { return take(x, 0, cast(arange(9), DType::int64)); });
  add("nothing", {3, 0}, [](const Tensor& x) { return x + 1; });
  add("sum", {33, 5}, [](const Tensor& x) { return sum(x, 0); });
  add("max", {33, 5}, [](const Tensor& x) { return max(x, -1); });
  add("argmin", {33, 5}, [](const Tensor& x) { return argmin(x, 0); });
  add("cumsum", {5, 33}, [](const Tensor& x) { return cumsum(x, 1); });
  add("window", {12, 3}, [](const Tensor& x) { return window(x, 0, 4, 2); });
}

void add_images(std::vector<OpCase>& cases) {
  const Tolerance sums{2e-5, 2e-5}, gradient_sums{1e-4, 2e-4};
  const auto convolve = [&](const std::string& name, const Shape& image, const Shape& weight,
                            const ConvolutionOptions& options) {
    cases.push_back({"convolution/" + name,
                     {{image}, {weight}, {{weight[0]}}},
                     [options](Inputs in) { return convolution(in[0], in[1], in[2], options); },
                     sums,
                     gradient_sums});
  };
  const auto convolve_by_tiles = [&](const std::string& name, const Shape& image, const Shape& weight,
                                     const ConvolutionOptions& options) {
    convolve("tiles_" + name, image, weight, options);
    cases.back().tolerance = {2e-4, 5e-5};
    cases.back().gradient_tolerance = {1e-3, 3e-4};
  };
  convolve_by_tiles("whole", {2, 16, 16, 16}, {64, 16, 3, 3}, {.padding = 1});
  convolve_by_tiles("ragged", {3, 7, 17, 19}, {33, 7, 3, 5}, {.padding = 2});
  convolve_by_tiles("stride_groups", {4, 16, 31, 33}, {64, 8, 3, 3},
                    {.stride = 2, .padding = 1, .groups = 2});
  convolve_by_tiles("one_by_one", {2, 64, 16, 16}, {64, 64, 1, 1}, {});
  convolve("plain", {2, 3, 7, 5}, {4, 3, 3, 2}, {});
  convolve("one_by_one", {2, 3, 4, 5}, {4, 3, 1, 1}, {});
  convolve("padded_stride", {1, 2, 7, 8}, {3, 2, 3, 3}, {.stride = 2, .padding = 1});
  convolve("dilated", {1, 2, 7, 8}, {3, 2, 3, 3}, {.padding = 2, .dilation = 2});
  convolve("groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {.padding = 1, .groups = 2});
  convolve("depthwise", {2, 4, 5, 5}, {4, 1, 3, 3}, {.padding = 1, .groups = 4});
  convolve("no_images", {0, 2, 5, 5}, {3, 2, 3, 3}, {});
  cases.push_back({"convolution/no_bias",
                   {{{1, 2, 5, 5}}, {{3, 2, 3, 3}}},
                   [](Inputs in) { return convolution(in[0], in[1], Tensor()); },
                   sums,
                   gradient_sums});
  const CaseInput image{{2, 3, 7, 6}};
  add(cases, "max_pool/default", {image}, [](Inputs in) { return max_pool(in[0]); });
  add(cases, "max_pool/overlap_padded", {image},
      [](Inputs in) { return max_pool(in[0], {.size = 3, .stride = 2, .padding = 1}); });
  add(cases, "avg_pool/default", {image}, [](Inputs in) { return avg_pool(in[0]); });
  add(cases, "avg_pool/overlap_padded", {image},
      [](Inputs in) { return avg_pool(in[0], {.size = 3, .stride = 1, .padding = 1}); });
}

}  // namespace

void add_shape_cases(std::vector<OpCase>& cases) {
  add_views(cases);
  add_joins(cases);
  add_indexing(cases);
  add_images(cases);
  add_narrow(cases);
  add_narrow_integers(cases);
  add_wide_integers(cases);
}

}  // namespace imprint::reference

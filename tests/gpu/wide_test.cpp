// Kernels of large tensors, bound by memory, against the double oracle: maps of four elements at a time if
// index arithmetic allows, rows that stay in registers through their folds, folds in two steps; divisible and
// odd extents.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "compute/graph/gradients/autodiff.h"
#include "tests/gpu/session_test.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

Tensor wave(const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 2 * std::sin(static_cast<float>(i % 9973 + name.size()) * 0.7f);
  return Variable(name, shape, values).value();
}

struct Case {
  const char* name;
  std::optional<bool> is_wide;  // whether a kernel must, or cannot, take four elements at a time
  std::uint32_t dispatches;
  std::function<std::vector<Tensor>()> outputs;
  double tolerance = 2e-5;
};

class WideTest : public test::SessionTest, public testing::WithParamInterface<Case> {};

TEST_P(WideTest, EqualsTheOracle) {
  const std::vector<Tensor> outputs = GetParam().outputs();
  for (const Tensor& output : outputs) ASSERT_TRUE(output.ok()) << output.error().message;
  const auto expected = reference::evaluate_all(outputs);
  Program program = compile({.name = GetParam().name, .outputs = outputs});
  bool is_wide = false;
  for (const std::string& glsl : program.glsl())
    is_wide = is_wide || glsl.find("vec4 v") != std::string::npos;
  if (GetParam().is_wide) EXPECT_EQ(is_wide, *GetParam().is_wide);
  EXPECT_LE(program.stats().dispatches, GetParam().dispatches) << program.explain();
  const auto results = session().run(program);
  ASSERT_TRUE(results) << results.error().message;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const HostTensor& found = (*results)[o];
    for (std::size_t i = 0; i < expected[o].size(); ++i) {
      const double value =
          found.dtype == DType::float32 ? static_cast<double>(found.floats[i]) : found.ints[i];
      ASSERT_NEAR(value, expected[o][i], GetParam().tolerance * std::max(1.0, std::abs(expected[o][i])))
          << "output " << o << " " << found.shape.text() << " element " << i;
    }
  }
}

const Case kMaps[] = {
    {"chain", true, 1,
     [] {
       return std::vector{gelu(wave("x", {256, 512}))};
     }},
    {"tail", true, 1, [] { return std::vector{gelu(wave("x", {131075})) * 2.0f}; }},
    {"broadcast_along_rows", true, 1,
     [] {
       return std::vector{tanh(wave("x", {256, 512}) + wave("bias", {512}))};
     }},
    {"broadcast_along_columns", true, 2,
     [] {
       return std::vector{wave("x", {256, 512}) * exp(wave("scale", {256, 1}))};
     }},
    {"odd_rows", false, 1,
     [] {
       return std::vector{wave("x", {256, 513}) + wave("bias", {513})};
     }},
    {"comparisons", true, 1,
     [] {
       const Tensor x = wave("x", {256, 512}), b = wave("b", {512});
       return std::vector{where(x < b, relu(x), clamp(x, -1, 1)),
                          cast(logical_and(x<b, x> 0.1f), DType::int32)};
     }},
    {"transpose", true, 1,
     [] {
       return std::vector{transpose(wave("x", {256, 516}))};
     }},
    {"transpose_of_a_chain", true, 1,
     [] {
       return std::vector{exp(transpose(wave("x", {256, 512}) * 0.3f)) * wave("row", {256}) +
                          wave("y", {512, 256})};
     }},
    {"transpose_of_odd", false, 1,
     [] {
       return std::vector{transpose(wave("x", {255, 514}))};
     }},
    {"channels_last", true, 1,
     [] {
       return std::vector{permute(wave("x", {6, 64, 24, 20}), {0, 2, 3, 1})};
     }},
    {"few_channels_last", true, 1,
     [] {
       return std::vector{permute(wave("x", {6, 4, 80, 60}), {0, 2, 3, 1}) * 2.0f};
     }},
    {"reversed", true, 1,
     [] {
       return std::vector{permute(wave("x", {12, 32, 16, 20}), {3, 1, 0, 2})};
     }},
    {"outer_permute", true, 1,
     [] {
       return std::vector{permute(wave("x", {12, 32, 16, 20}), {1, 0, 2, 3}) + 1.0f};
     }},
    {"regrouped_transpose", true, 1,
     [] {
       const Tensor x = wave("x", {256, 512});
       return std::vector{reshape(transpose(x), {256, 512}) * x};
     }},
    {"slices", true, 1,
     [] {
       const Tensor x = wave("x", {256, 600});
       return std::vector{slice(x, 1, 8, 520) + slice(x, 1, 7, 519), slice(x, 1, 599, -601, -2)};
     }},
    {"pad_by_fours", true, 1,
     [] {
       return std::vector{pad(wave("x", {256, 512}),
                              std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}, {4, 8}}, 1.5)};
     }},
    {"pad_by_odd", false, 1,
     [] {
       return std::vector{pad(wave("x", {256, 512}),
                              std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}, {3, 5}}, 1.5)};
     }},
    // Three channels become four.
    {"pad_of_places", true, 1,
     [] {
       return std::vector{
           pad(permute(wave("x", {9, 3, 60, 52}), {0, 2, 3, 1}),
               std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {3, 3}, {3, 2}, {0, 1}}, 0.5)};
     }},
    {"windows", std::nullopt, 1,
     [] {
       const Tensor x =
           pad(wave("x", {3, 30, 32, 24}),
               std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {1, 1}, {1, 1}, {0, 0}}, -1.5);
       return std::vector{max(window(window(x, 1, 3, 2), 2, 3, 2), {4, 5})};
     }},
    {"concat", true, 1,
     [] {
       const Tensor x = wave("x", {256, 512});
       return std::vector{concat({x * 2.0f, wave("y", {256, 128})}, 1), concat({x, -x}, 0)};
     }},
    {"take_rows", true, 2,
     [] {
       return std::vector{take(wave("x", {100, 512}), 0, remainder(iota({256}, 0) * 7, 100)) +
                          wave("bias", {512})};
     }},
    {"indices", true, 1,
     [] {
       return std::vector{iota({256, 512}, 1) * 3 + iota({256, 512}, 0)};
     }},
    {"uniform", true, 1,
     [] {
       return std::vector{
           random_uniform(Variable("g", {4}, std::vector<std::int32_t>{1, 2, 3, 0}).value(), {256, 512}, 3)};
     }},
    {"thin_product", true, 3,
     [] {
       return std::vector{matmul(exp(wave("a", {20000, 6})), exp(wave("w", {6, 8}))) + wave("bias", {8})};
     }},
    {"short_folds", true, 1,
     [] {
       return std::vector{sum(wave("x", {12, 70000}), {0}), max(wave("y", {40000, 6, 4}), {1})};
     }},
};

Tensor gain() { return wave("gain", {512}); }
Tensor bias() { return wave("bias", {512}); }

const Case kRows[] = {
    {"softmax", true, 1,
     [] {
       return std::vector{softmax(wave("x", {300, 512}))};
     }},
    {"softmax_of_odd_rows", false, 1,
     [] {
       return std::vector{softmax(wave("x", {301, 511}))};
     }},
    {"softmax_of_short_rows", true, 1,
     [] {
       return std::vector{softmax(wave("x", {3000, 36}))};
     }},
    {"softmax_of_short_odd_rows", false, 1,
     [] {
       return std::vector{softmax(wave("x", {2999, 37}))};
     }},
    {"softmax_of_long_rows", true, 1,
     [] {
       return std::vector{softmax(wave("x", {37, 4100}))};
     }},
    {"softmax_over_two_axes", true, 1,
     [] {
       const Tensor x = wave("x", {50, 40, 48});
       const Tensor e = exp(x - max(x, {1, 2}, true));
       return std::vector{e / sum(e, {1, 2}, true)};
     }},
    {"softmax_in_the_middle", true, 1,
     [] {
       return std::vector{exp(softmax(gelu(wave("x", {300, 512}))) + bias()) * 2.0f};
     }},
    {"layer_norm", true, 1,
     [] {
       return std::vector{layer_norm(wave("x", {300, 512}), gain(), bias())};
     }},
    {"layer_norm_with_its_numbers", true, 1,
     [] {
       const Tensor x = wave("x", {300, 512}), m = mean(x, {1}, true);
       return std::vector{layer_norm(x, gain(), bias()), m, square(m)};
     }},
    {"log_softmax_and_loss", true, 2,
     [] {
       const Tensor l = log_softmax(wave("x", {300, 512}));
       return std::vector{l, mean(sum(l * exp(l), {1}))};
     }},
    {"two_norms_in_turn", true, 1,
     [] {
       return std::vector{layer_norm(softmax(wave("x", {300, 512})) * 100.0f, gain(), bias())};
     }},
    {"two_norms_side_by_side", true, 1,
     [] {
       const Tensor x = wave("x", {300, 512});
       return std::vector{softmax(x) * sum(x * x, {1}, true), layer_norm(x, gain(), bias())};
     }},
    {"masked", true, 1,
     [] {
       const Tensor x = wave("x", {300, 512});
       return std::vector{softmax(where(x < bias(), x, -1e9f))};
     }},
    {"through_another_kernel", true, 4,
     [] {
       const Tensor x = wave("x", {300, 512}), p = softmax(x);
       return std::vector{softmax(x + cumsum(p, 1) * sum(p * x, {1}, true))};
     }},
    {"derivative_of_softmax", true, 1,
     [] {
       const Tensor x = wave("x", {300, 512});
       const Tensor only[] = {x};
       return gradients(sum(softmax(x) * bias()), only).value();
     }},
    {"derivative_of_layer_norm", true, 3,
     [] {
       const Tensor x = wave("x", {300, 512}), g = gain();
       const Tensor both[] = {x, g};
       return gradients(sum(layer_norm(x, g, bias()) * wave("up", {300, 512})), both).value();
     }},
};

const Case kFolds[] = {
    {"sums_of_rows", true, 1,
     [] {
       const Tensor x = wave("x", {2000, 512});
       return std::vector{sum(x, {1}), max(x * bias(), {1}) * 2.0f};
     }},
    {"sums_of_odd_rows", false, 1,
     [] {
       return std::vector{sum(square(wave("x", {2001, 511})), {1})};
     }},
    {"positions_in_rows", false, 1,
     [] {
       const Tensor x = wave("x", {2000, 512});
       return std::vector{argmax(x, 1), argmin(x, 0)};
     }},
    {"sums_of_columns", std::nullopt, 2,
     [] {
       const Tensor x = wave("x", {8192, 64});
       return std::vector{sum(x, {0}), max(exp(x), {0}) + 1.0f};
     }},
    {"sums_of_odd_columns", false, 2,
     [] {
       return std::vector{sum(wave("x", {8191, 63}), {0})};
     }},
    {"sums_of_channels", std::nullopt, 2,
     [] {
       return std::vector{sum(wave("x", {16, 8, 4096}), {0, 2}), mean(wave("y", {8, 2000, 32}), {1})};
     },
     4e-5},  // 512 places are nearly whole waves: partial sums grow to hundreds before they cancel
    {"sum_of_all", true, 2,
     [] {
       const Tensor x = wave("x", {524290});
       return std::vector{sum(x), min(x), mean(square(x))};
     }},
    {"sum_of_all_odd", false, 2,
     [] {
       return std::vector{sum(wave("x", {5, 104857}))};
     }},
};

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Rows, WideTest, testing::ValuesIn(kRows), case_name);
INSTANTIATE_TEST_SUITE_P(Folds, WideTest, testing::ValuesIn(kFolds), case_name);
INSTANTIATE_TEST_SUITE_P(Maps, WideTest, testing::ValuesIn(kMaps), case_name);

}  // namespace
}  // namespace imprint

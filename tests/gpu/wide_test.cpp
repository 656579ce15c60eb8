// Large tensors, whose kernels take four elements at a time where their index arithmetic allows it, against the double oracle: extents that divide by
// four and that do not, broadcasts, views that cross, tails.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/gpu/session_test.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

Tensor wave(const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * std::sin(static_cast<float>(i % 9973 + name.size()) * 0.7f);
  return Variable(name, shape, values).value();
}

struct Case {
  const char* name;
  bool is_wide;
  std::function<std::vector<Tensor>()> outputs;
};

class WideTest : public test::SessionTest, public testing::WithParamInterface<Case> {};

TEST_P(WideTest, EqualsTheOracle) {
  const std::vector<Tensor> outputs = GetParam().outputs();
  for (const Tensor& output : outputs) ASSERT_TRUE(output.ok()) << output.error().message;
  const auto expected = reference::evaluate_all(outputs);
  Program program = compile({.name = GetParam().name, .outputs = outputs});
  bool is_wide = false;
  for (const std::string& glsl : program.glsl()) is_wide = is_wide || glsl.find("vec4 v") != std::string::npos;
  EXPECT_EQ(is_wide, GetParam().is_wide);
  const auto results = session().run(program);
  ASSERT_TRUE(results) << results.error().message;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const HostTensor& found = (*results)[o];
    for (std::size_t i = 0; i < expected[o].size(); ++i) {
      const double value = found.dtype == DType::float32 ? static_cast<double>(found.floats[i]) : found.ints[i];
      ASSERT_NEAR(value, expected[o][i], 2e-5 * std::max(1.0, std::abs(expected[o][i]))) << "output " << o << " " << found.shape.text() << " element " << i;
    }
  }
}

const Case kMaps[] = {
    {"chain", true, [] { return std::vector{gelu(wave("x", {256, 512}))}; }},
    {"tail", true, [] { return std::vector{gelu(wave("x", {131075})) * 2.0f}; }},
    {"broadcast_along_rows", true, [] { return std::vector{tanh(wave("x", {256, 512}) + wave("bias", {512}))}; }},
    {"broadcast_along_columns", true, [] { return std::vector{wave("x", {256, 512}) * exp(wave("scale", {256, 1}))}; }},
    {"odd_rows", false, [] { return std::vector{wave("x", {256, 513}) + wave("bias", {513})}; }},
    {"comparisons", true, [] { const Tensor x = wave("x", {256, 512}), b = wave("b", {512}); return std::vector{where(x < b, relu(x), clamp(x, -1, 1)), cast(logical_and(x < b, x > 0.1f), DType::int32)}; }},
    {"transpose", true, [] { return std::vector{transpose(wave("x", {256, 516}))}; }},
    {"transpose_of_a_chain", true, [] { return std::vector{exp(transpose(wave("x", {256, 512}) * 0.3f)) * wave("row", {256}) + wave("y", {512, 256})}; }},
    {"transpose_of_odd", false, [] { return std::vector{transpose(wave("x", {255, 514}))}; }},
    {"channels_last", true, [] { return std::vector{permute(wave("x", {6, 64, 24, 20}), {0, 2, 3, 1})}; }},
    {"few_channels_last", true, [] { return std::vector{permute(wave("x", {6, 4, 80, 60}), {0, 2, 3, 1}) * 2.0f}; }},
    {"reversed", true, [] { return std::vector{permute(wave("x", {12, 32, 16, 20}), {3, 1, 0, 2})}; }},
    {"outer_permute", true, [] { return std::vector{permute(wave("x", {12, 32, 16, 20}), {1, 0, 2, 3}) + 1.0f}; }},
    {"regrouped_transpose", true, [] { const Tensor x = wave("x", {256, 512}); return std::vector{reshape(transpose(x), {256, 512}) * x}; }},
    {"slices", true, [] { const Tensor x = wave("x", {256, 600}); return std::vector{slice(x, 1, 8, 520) + slice(x, 1, 7, 519), slice(x, 1, 599, -601, -2)}; }},
    {"pad_by_fours", true, [] { return std::vector{pad(wave("x", {256, 512}), std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}, {4, 8}}, 1.5)}; }},
    {"pad_by_odd", false, [] { return std::vector{pad(wave("x", {256, 512}), std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}, {3, 5}}, 1.5)}; }},
    {"concat", true, [] { const Tensor x = wave("x", {256, 512}); return std::vector{concat({x * 2.0f, wave("y", {256, 128})}, 1), concat({x, -x}, 0)}; }},
    {"take_rows", true, [] { return std::vector{take(wave("x", {100, 512}), 0, remainder(iota({256}, 0) * 7, 100)) + wave("bias", {512})}; }},
    {"indices", true, [] { return std::vector{iota({256, 512}, 1) * 3 + iota({256, 512}, 0)}; }},
    {"uniform", true, [] { return std::vector{random_uniform(Variable("g", {4}, std::vector<std::int32_t>{1, 2, 3, 0}).value(), {256, 512}, 3)}; }},
    {"thin_product", true, [] { return std::vector{matmul(exp(wave("a", {20000, 6})), exp(wave("w", {6, 8}))) + wave("bias", {8})}; }},
    {"short_folds", true, [] { return std::vector{sum(wave("x", {12, 70000}), {0}), max(wave("y", {40000, 6, 4}), {1})}; }},
};

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Maps, WideTest, testing::ValuesIn(kMaps), case_name);

}  // namespace
}  // namespace imprint

// Operators of ONNX Runtime's exporters that onnxruntime computes on other devices alone: values are by hand.
// The others have onnxruntime's answers (model_microsoft_agreement).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::kBool;
using test::kInt32;
using test::kInt64;
using test::kInt8;
using test::kUint8;
using test::must_import;
using test::OnnxBuilder;
using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;
using Attributes = std::vector<OnnxBuilder::Attribute>;

auto within(const Doubles& expected, double tolerance = 1e-5) {
  return Pointwise(testing::DoubleNear(tolerance), expected);
}

OnnxBuilder with_node(OnnxBuilder builder, const char* op, const Names& inputs,
                      const Attributes& attributes = {}, int type = test::kFloat,
                      const Names& outputs = {"y"}) {
  builder.node(op, inputs, outputs, attributes, "", "com.microsoft");
  for (const std::string& output : outputs) builder.output(output, {}, type);
  return builder;
}

Doubles ramp(std::size_t count, double from, double step) {
  Doubles out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = from + step * static_cast<double>(i % 17);
  return out;
}

double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }

// ---- quantised ----

TEST(OnnxMicrosoftNumbers, WholeNumbersAndMeans) {
  OnnxBuilder builder;
  builder.input("a", {"2", "2"}, kUint8).input("b", {"2"}, kUint8);
  builder.raw("seven", {}, kUint8, std::string("\7", 1)).raw("nine", {}, kUint8, std::string("\11", 1));
  const reference::Bindings values{{"a", {10, 14, 255, 0}}, {"b", {1, 12}}};
  EXPECT_THAT(
      test::run(with_node(builder, "MulInteger", {"a", "seven", "b", "nine"}, {}, kInt32), {}, values),
      ElementsAre(-24, 21, -1984, -21));
  EXPECT_THAT(test::run(with_node(builder, "MulInteger", {"a", "", "b", ""}, {}, kInt32), {}, values),
              ElementsAre(10, 168, 255, 0));
  const Attributes columns{OnnxBuilder::list("axes", {0}), OnnxBuilder::number("keepdims", 0)};
  EXPECT_THAT(test::run(with_node(builder, "ReduceSumInteger", {"a"}, columns, kInt32), {}, values),
              ElementsAre(265, 14));
  builder.floats("half", {}, {0.5f}).floats("one", {}, {1});
  // (10 + 255) / 2 - 7 = 125.5 halves, plus 9.
  EXPECT_THAT(test::run(with_node(builder, "QLinearReduceMean", {"a", "half", "seven", "one", "nine"},
                                  columns, kUint8),
                        {}, values),
              ElementsAre(72, 9));
}

// With weights that 8 bits hold exactly, the LSTM is that of these numbers.
TEST(OnnxMicrosoftNumbers, LstmWithQuantisedWeights) {
  constexpr std::int64_t kSteps = 3, kIn = 2, kHidden = 2, kWide = 4 * kHidden;
  std::string w, r;
  std::vector<float> real_w(kWide * kIn), real_r(kWide * kHidden);
  for (std::int64_t from = 0; from < kIn; ++from)
    for (std::int64_t to = 0; to < kWide; ++to) {
      const int a = static_cast<int>((from * 5 + to * 3) % 11) - 5,
                b = static_cast<int>((from * 7 + to) % 9) - 4;
      w += static_cast<char>(a);
      r += static_cast<char>(b);
      real_w[static_cast<std::size_t>(to * kIn + from)] = 0.25f * static_cast<float>(a - 1);
      real_r[static_cast<std::size_t>(to * kHidden + from)] = 0.125f * static_cast<float>(b);
    }
  const Attributes hidden{OnnxBuilder::number("hidden_size", kHidden)};
  OnnxBuilder quantised, plain;
  for (OnnxBuilder* builder : {&quantised, &plain}) builder->input("x", {"3", "1", "2"});
  quantised.raw("w", {1, kIn, kWide}, kInt8, w).raw("r", {1, kHidden, kWide}, kInt8, r);
  quantised.floats("ws", {1}, {0.25f}).raw("wz", {1}, kInt8, "\1");
  quantised.floats("rs", {1, kWide}, std::vector<float>(kWide, 0.125f))
      .raw("rz", {1, kWide}, kInt8, std::string(kWide, '\0'));
  plain.floats("w", {1, kWide, kIn}, real_w).floats("r", {1, kWide, kHidden}, real_r);
  plain.node("LSTM", {"x", "w", "r"}, {"y"}, hidden).output("y");
  const reference::Bindings values{{"x", ramp(kSteps * kIn, -1, 0.5)}};
  EXPECT_THAT(test::run(with_node(quantised, "DynamicQuantizeLSTM",
                                  {"x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"}, hidden),
                        {}, values),
              within(test::run(plain, {}, values)));
}

// ---- a bias and what follows it ----

TEST(OnnxMicrosoftBias, AddsBeforeWhatFollows) {
  OnnxBuilder builder;
  builder.input("x", {"2", "2"}).input("b", {"2"}).input("z", {"2", "2"});
  const reference::Bindings values{{"x", {1, -2, 3, 0.5}}, {"b", {0.5, 1}}, {"z", {10, 20, 30, 40}}};
  EXPECT_THAT(test::run(with_node(builder, "BiasAdd", {"x", "b", "z"}), {}, values),
              within({11.5, 19, 33.5, 41.5}));
  EXPECT_THAT(test::run(with_node(builder, "BiasDropout", {"x", "b", "z"}), {}, values),
              within({11.5, 19, 33.5, 41.5}));
  EXPECT_THAT(test::run(with_node(builder, "BiasSplitGelu", {"x", "b"}), {}, values),
              within({1.5 * gelu(-1), 3.5 * gelu(1.5)}));
  const double first = 1 / (1 + std::exp(-2.5)), second = 1 / (1 + std::exp(-2.0));
  EXPECT_THAT(
      test::run(with_node(builder, "BiasSoftmax", {"x", "b"},
                          {OnnxBuilder::number("axis", 1), OnnxBuilder::number("is_inner_broadcast", 0)}),
                {}, values),
      within({first, 1 - first, second, 1 - second}));
  const auto tanh_gelu = [](double x) {
    return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  };
  EXPECT_THAT(test::run(with_node(builder, "GemmFastGelu", {"x", "z", "b"}), {}, values),
              within({tanh_gelu(-49.5), tanh_gelu(-59), tanh_gelu(45.5), tanh_gelu(81)}, 1e-4));
  OnnxBuilder training = builder;
  training.floats("ratio", {}, {0.5f}).raw("train", {}, kBool, "\1");
  EXPECT_THAT(refusal(with_node(training, "BiasDropout", {"x", "b", "z", "ratio", "train"})).message,
              HasSubstr("training"));
}

// ---- groups ----

TEST(OnnxMicrosoftGroups, NormaliseChannelsThatComeLast) {
  OnnxBuilder builder;
  builder.input("x", {"1", "2", "1", "4"}).input("s", {"1", "4"});
  builder.floats("g", {4}, {1, 2, 1, 1}).floats("b", {4}, {0, 0, 1, 0}).floats("c", {4}, {1, 1, 1, 1});
  const Attributes two{OnnxBuilder::number("groups", 2), OnnxBuilder::number("activation", 0),
                       OnnxBuilder::real("epsilon", 0)};
  // Groups {1, 3, 1, 3} and {2, 2, 6, 6}.
  const reference::Bindings values{{"x", {1, 3, 2, 2, 1, 3, 6, 6}}, {"s", {0, 0, -1, 1}}};
  const Doubles expected{-1, 2, 0, -1, -1, 2, 2, 1};
  EXPECT_THAT(test::run(with_node(builder, "GroupNorm", {"x", "g", "b"}, two), {}, values), within(expected));
  const Attributes silu{OnnxBuilder::number("groups", 2), OnnxBuilder::number("activation", 1),
                        OnnxBuilder::real("epsilon", 0)};
  Doubles gated = expected;
  for (double& value : gated) value /= 1 + std::exp(-value);
  EXPECT_THAT(test::run(with_node(builder, "GroupNorm", {"x", "g", "b"}, silu), {}, values), within(gated));
  // With skip and bias the groups are {2, 4, 2, 4} and {2, 4, 6, 8}.
  const ImportedModel both = must_import(
      with_node(builder, "SkipGroupNorm", {"x", "g", "b", "s", "c"}, two, test::kFloat, {"y", "sum"}));
  ASSERT_EQ(both.outputs.size(), 2u);
  const double unit = 1 / std::sqrt(5.0);
  EXPECT_THAT(reference::evaluate(both.outputs[0].tensor, values),
              within({-1, 2, 1 - 3 * unit, -unit, -1, 2, 1 + unit, 3 * unit}));
  EXPECT_THAT(reference::evaluate(both.outputs[1].tensor, values), within({2, 4, 2, 4, 2, 4, 6, 8}));
}

// ---- positions ----

// Eight buckets both ways: four each, of which two are exact; 2 and 3 share one, then up to 16.
TEST(OnnxMicrosoftPositions, BucketsOfDistances) {
  OnnxBuilder builder;
  Doubles table(16);
  std::iota(table.begin(), table.end(), 0);
  builder.input("t", {"8", "2"}).longs("q", {1}, {1}).longs("k", {1}, {7}).longs("one", {1}, {7});
  const auto bias = [&](const Names& lengths, std::int64_t both_ways) {
    return test::run(with_node(builder, "RelativePositionBias", {"t", lengths[0], lengths[1]},
                               {OnnxBuilder::number("max_distance", 16),
                                OnnxBuilder::number("is_bidirectional", both_ways)}),
                     {}, {{"t", table}});
  };
  // Distances 0 to 6: log(2 / 2) .. log(6 / 2) of log(16 / 2), times two buckets.
  EXPECT_THAT(bias({"q", "k"}, 1), ElementsAre(0, 10, 12, 12, 12, 12, 14, 1, 11, 13, 13, 13, 13, 15));
  // One way only keys before the query count: 6 to 0 places before it.
  const Doubles causal = bias({"one", "q"}, 0);
  EXPECT_THAT(causal, ElementsAre(0, 2, 4, 6, 8, 8, 10, 1, 3, 5, 7, 9, 9, 11));
}

TEST(OnnxMicrosoftPositions, RowsOfATable) {
  OnnxBuilder builder;
  builder.input("t", {"3", "2"}).longs("i", {2}, {2, 0});
  EXPECT_THAT(test::run(with_node(builder, "TorchEmbedding", {"t", "i"}), {}, {{"t", {1, 2, 3, 4, 5, 6}}}),
              ElementsAre(5, 6, 1, 2));
}

TEST(OnnxMicrosoftNumbers, ComplexProducts) {
  OnnxBuilder builder;
  builder.input("a", {"2", "2"}).input("b", {"1", "2"});
  const reference::Bindings values{{"a", {1, 2, 3, -1}}, {"b", {2, 5}}};
  EXPECT_THAT(test::run(with_node(builder, "ComplexMul", {"a", "b"}), {}, values),
              ElementsAre(-8, 9, 11, 13));
  EXPECT_THAT(test::run(with_node(builder, "ComplexMulConj", {"a", "b"}), {}, values),
              ElementsAre(12, -1, 1, -17));
}

// ---- attention ----

// Packed queries, keys and values lie beside each other for each head.
TEST(OnnxMicrosoftAttention, PackedIsAsSeparate) {
  constexpr std::size_t kSteps = 3, kHeads = 2, kExtent = 2;
  const Doubles q = ramp(12, -1, 0.25), k = ramp(12, 0.5, -0.125), v = ramp(12, 2, 0.5);
  Doubles all, pair;
  for (std::size_t step = 0; step < kSteps; ++step)
    for (std::size_t head = 0; head < kHeads; ++head)
      for (const Doubles* part : {&q, &k, &v})
        for (std::size_t i = 0; i < kExtent; ++i) {
          const double value = (*part)[(step * kHeads + head) * kExtent + i];
          all.push_back(value);
          if (part != &q) pair.push_back(value);
        }
  const Attributes heads{OnnxBuilder::number("num_heads", kHeads)};
  OnnxBuilder builder;
  builder.input("q", {"1", "3", "4"}).input("k", {"1", "3", "4"}).input("v", {"1", "3", "4"});
  builder.input("all", {"1", "3", "2", "3", "2"}).input("pair", {"1", "3", "2", "2", "2"});
  const reference::Bindings values{{"q", q}, {"k", k}, {"v", v}, {"all", all}, {"pair", pair}};
  const Doubles expected =
      test::run(with_node(builder, "MultiHeadAttention", {"q", "k", "v"}, heads), {}, values);
  ASSERT_EQ(expected.size(), 12u);
  EXPECT_THAT(test::run(with_node(builder, "MultiHeadAttention", {"all"}, heads), {}, values),
              within(expected));
  EXPECT_THAT(test::run(with_node(builder, "MultiHeadAttention", {"q", "pair"}, heads), {}, values),
              within(expected));
  EXPECT_THAT(
      test::run(with_node(builder, "DecoderMaskedMultiHeadAttention", {"q", "k", "v"}, heads), {}, values),
      within(expected));
  EXPECT_THAT(refusal(with_node(builder, "MultiHeadAttention", {"q"}, heads)).message,
              HasSubstr("expected keys and values, or all of 2 heads packed"));
}

}  // namespace
}  // namespace imprint

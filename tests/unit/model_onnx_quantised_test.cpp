// QuantizeLinear and DequantizeLinear around products, as exporters write them: computed of the numbers.

#include <gmock/gmock.h>

#include <cmath>

#include "compute/program/run.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::Extents;
using test::kInt32;
using test::kInt8;
using test::kUint8;
using test::OnnxBuilder;
using ::testing::HasSubstr;

constexpr int kUint16 = 4;

std::vector<int> byte_numbers(std::int64_t count, int low, int high, int seed) {
  std::vector<int> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(low + static_cast<int>((i * 7919 + seed * 104729 + i / 7) % (high - low + 1)));
  return numbers;
}

std::string packed_bytes(const std::vector<int>& numbers) {
  std::string bytes;
  for (const int number : numbers) bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::vector<float> waves(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(2.5f * std::sin(0.7f * static_cast<float>(i)));
  return values;
}

// On the CPU, whose products of whole numbers have pairs of 16 bits.
std::vector<float> computed(const ImportedModel& model, const std::vector<float>& x, const Shape& shape) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  auto program =
      Program::compile(*runtime, {.inputs = model.input_tensors(), .outputs = model.output_tensors()});
  EXPECT_TRUE(program.ok()) << (program ? "" : program.error().message);
  if (!program) return {};
  const HostTensor data = HostTensor::from(x, shape);
  const auto found = session.run(*program, std::span(&data, 1));
  EXPECT_TRUE(found.ok()) << (found ? "" : found.error().message);
  return found ? (*found)[0].floats : std::vector<float>();
}

// The number that QuantizeLinear gives for a float, for one type's range.
int rounded(float x, float scale, int zero, int low, int high) {
  return std::min(high, std::max(low, static_cast<int>(std::nearbyint(x / scale)) + zero));
}

constexpr std::int64_t kRows = 3, kTerms = 333, kColumns = 5;
constexpr float kScale = 0.03f;

struct Form {
  const char* name;
  int type;         // of the weights
  bool has_zeros;   // weights and activations
  bool by_channel;  // scales and zero points of the weights
  bool transposed;  // Gemm's transB, with a bias
};

class QuantisedPairs : public ::testing::TestWithParam<Form> {};

TEST_P(QuantisedPairs, AreComputedOfTheirNumbers) {
  const Form form = GetParam();
  const bool is_signed = form.type == kInt8;
  const int low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  const std::vector<int> weights = byte_numbers(kTerms * kColumns, low, high, 1);
  const std::int64_t channels = form.by_channel ? kColumns : 1;
  std::vector<float> scales;
  for (std::int64_t i = 0; i < channels; ++i) scales.push_back(0.01f + 0.003f * static_cast<float>(i));
  const std::vector<int> zeros = byte_numbers(channels, is_signed ? -3 : 120, is_signed ? 3 : 131, 5);
  const int x_zero = form.has_zeros ? 117 : 0;

  OnnxBuilder builder;
  builder.input("x", {"3", "333"}).floats("s", {}, {kScale}).raw("z", {}, kUint8, packed_bytes({x_zero}));
  builder
      .raw("w", form.transposed ? Extents{kColumns, kTerms} : Extents{kTerms, kColumns}, form.type,
           packed_bytes(weights))
      .floats("ws", form.by_channel ? Extents{channels} : Extents{}, scales)
      .raw("wz", form.by_channel ? Extents{channels} : Extents{}, form.type, packed_bytes(zeros));
  const auto zero = [&](const char* name) { return form.has_zeros ? name : ""; };
  builder.node("QuantizeLinear", {"x", "s", zero("z")}, {"q"})
      .node("DequantizeLinear", {"q", "s", zero("z")}, {"xf"})
      .node("DequantizeLinear", {"w", "ws", zero("wz")}, {"wf"},
            {OnnxBuilder::number("axis", form.transposed ? 0 : 1)});
  if (form.transposed)
    builder.raw("b", {kColumns}, kInt32, std::string("\7\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0", 20))
        .node("DequantizeLinear", {"b", "s"}, {"bias"})
        .node("Gemm", {"xf", "wf", "bias"}, {"y"}, {OnnxBuilder::number("transB", 1)});
  else
    builder.node("MatMul", {"xf", "wf"}, {"y"});
  const ImportedModel model = test::must_import(builder.output("y"));
  EXPECT_EQ(model.quantised.whole, 1u);
  EXPECT_EQ(model.quantised.in_float, 0u);

  const std::vector<float> x = waves(kRows * kTerms), found = computed(model, x, {kRows, kTerms});
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kRows * kColumns));
  const int bias[] = {7, 1, 0, 2, 3};
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < kColumns; ++column) {
      const auto channel = static_cast<std::size_t>(form.by_channel ? column : 0);
      std::int64_t sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < kTerms; ++k) {
        const std::int64_t at = form.transposed ? column * kTerms + k : k * kColumns + column;
        const int a = rounded(x[static_cast<std::size_t>(row * kTerms + k)], kScale, x_zero, 0, 255) - x_zero,
                  b = weights[static_cast<std::size_t>(at)] - (form.has_zeros ? zeros[channel] : 0);
        sum += a * b;
        magnitude += std::abs(b);
      }
      const float scaled = static_cast<float>(sum) * (kScale * scales[channel]);
      const float expected = form.transposed ? scaled + kScale * static_cast<float>(bias[column]) : scaled;
      // A sum in one part is exact. Others round where parts are added.
      const float tolerance = magnitude * 255 < 1 << 24 ? 0 : 4e-7f * std::fabs(expected);
      EXPECT_NEAR(found[static_cast<std::size_t>(row * kColumns + column)], expected, tolerance)
          << row << ", " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(Forms, QuantisedPairs,
                         ::testing::Values(Form{"SignedByChannel", kInt8, true, true, false},
                                           Form{"UnsignedByChannel", kUint8, true, true, false},
                                           Form{"WithoutZeroPoints", kInt8, false, false, false},
                                           Form{"UnsignedWithoutZeroPoints", kUint8, false, true, false},
                                           Form{"GemmByChannel", kInt8, true, true, true},
                                           Form{"GemmOfOneScale", kUint8, true, false, true}),
                         [](const auto& form) { return std::string(form.param.name); });

// Conv pads with the real number 0, which is the zero point. The result is quantised again.
TEST(QuantisedConvolutions, PadWithTheZeroPoint) {
  const std::vector<int> weights = byte_numbers(2 * 3 * 9, -128, 127, 2);
  const std::vector<float> scales = {0.02f, 0.005f};
  OnnxBuilder builder;
  builder.input("x", {"1", "3", "5", "4"}).floats("s", {}, {kScale}).floats("ys", {}, {0.5f});
  builder.raw("z", {}, kInt8, packed_bytes({-20}))
      .raw("w", {2, 3, 3, 3}, kInt8, packed_bytes(weights))
      .floats("ws", {2}, scales)
      .raw("wz", {2}, kInt8, std::string(2, '\0'))
      .floats("b", {2}, {0.25f, -1.5f})
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"xf"})
      .node("DequantizeLinear", {"w", "ws", "wz"}, {"wf"}, {OnnxBuilder::number("axis", 0)})
      .node("Conv", {"xf", "wf", "b"}, {"c"}, {OnnxBuilder::list("pads", {1, 1, 1, 1})})
      .node("QuantizeLinear", {"c", "ys", "z"}, {"yq"})
      .node("DequantizeLinear", {"yq", "ys", "z"}, {"y"});
  const ImportedModel model = test::must_import(builder.output("y"));
  EXPECT_EQ(model.quantised.whole, 1u);
  const std::vector<float> x = waves(3 * 5 * 4), found = computed(model, x, {1, 3, 5, 4});
  ASSERT_EQ(found.size(), 2u * 5 * 4);
  for (int out = 0; out < 2; ++out)
    for (int row = 0; row < 5; ++row)
      for (int column = 0; column < 4; ++column) {
        std::int64_t sum = 0;
        for (int in = 0; in < 3; ++in)
          for (int tap = 0; tap < 9; ++tap) {
            const int r = row + tap / 3 - 1, c = column + tap % 3 - 1;
            if (r < 0 || r >= 5 || c < 0 || c >= 4) continue;
            sum += (rounded(x[static_cast<std::size_t>((in * 5 + r) * 4 + c)], kScale, -20, -128, 127) + 20) *
                   weights[static_cast<std::size_t>((out * 3 + in) * 9 + tap)];
          }
        const float bias = out == 0 ? 0.25f : -1.5f,
                    real = static_cast<float>(sum) * (kScale * scales[static_cast<std::size_t>(out)]) + bias;
        EXPECT_EQ(found[static_cast<std::size_t>((out * 5 + row) * 4 + column)],
                  static_cast<float>(rounded(real, 0.5f, -20, -128, 127) + 20) * 0.5f);
      }
}

// Transposed weights and flattened activations are still numbers and one scale.
TEST(QuantisedPairsBehindShapes, KeepTheirNumbers) {
  const std::vector<int> weights = byte_numbers(4 * 32, -127, 127, 3);
  OnnxBuilder builder;
  builder.input("x", {"2", "4", "8"}).floats("s", {1}, {kScale}).raw("z", {1}, kUint8, packed_bytes({128}));
  builder.raw("w", {4, 32}, kInt8, packed_bytes(weights))
      .floats("ws", {4}, {0.1f, 0.2f, 0.3f, 0.4f})
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"xf"})
      .node("Flatten", {"xf"}, {"flat"})
      .node("DequantizeLinear", {"w", "ws"}, {"wf"}, {OnnxBuilder::number("axis", 0)})
      .node("Transpose", {"wf"}, {"wt"}, {OnnxBuilder::list("perm", {1, 0})})
      .node("MatMul", {"flat", "wt"}, {"y"});
  const ImportedModel model = test::must_import(builder.output("y"));
  EXPECT_EQ(model.quantised.whole, 1u);
  const std::vector<float> x = waves(2 * 32), found = computed(model, x, {2, 4, 8});
  ASSERT_EQ(found.size(), 8u);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 4; ++column) {
      int sum = 0;
      for (std::size_t k = 0; k < 32; ++k)
        sum += (rounded(x[row * 32 + k], kScale, 128, 0, 255) - 128) * weights[column * 32 + k];
      EXPECT_EQ(found[row * 4 + column],
                static_cast<float>(sum) * (kScale * (0.1f * static_cast<float>(column + 1))));
    }
}

// A product that stays in float32 says why, and is right.
struct Other {
  const char* reason;
  std::function<void(OnnxBuilder&)> inputs;  // makes xf [2, 16] and wf [16, 3]
};

TEST(QuantisedPairsAndOthers, OthersStayInFloat) {
  const std::string ones(48, '\1');
  const auto weights = [&](OnnxBuilder& to) {
    to.raw("w", {16, 3}, kInt8, ones).node("DequantizeLinear", {"w", "one"}, {"wf"});
  };
  const auto quantised = [](OnnxBuilder& to) {
    to.node("QuantizeLinear", {"x", "one", "z"}, {"q"}).node("DequantizeLinear", {"q", "one", "z"}, {"xf"});
  };
  const Other others[] = {
      {"input 0: found float32",
       [&](OnnxBuilder& to) {
         weights(to), to.node("Add", {"x", "zero"}, {"xf"});
       }},
      {"input 1: found float32",
       [&](OnnxBuilder& to) {
         quantised(to), to.floats("wf", {16, 3}, std::vector<float>(48, 1));
       }},
      {"several scales",
       [&](OnnxBuilder& to) {
         weights(to), to.floats("two", {2}, {1, 1}).raw("z2", {2}, kUint8, packed_bytes({9, 9}));
         to.node("QuantizeLinear", {"x", "two", "z2"}, {"q"}, {OnnxBuilder::number("axis", 0)})
             .node("DequantizeLinear", {"q", "two", "z2"}, {"xf"}, {OnnxBuilder::number("axis", 0)});
       }},
      {"uint16 and int8",
       [&](OnnxBuilder& to) {
         weights(to), to.raw("wide", {}, kUint16, std::string("\t\0", 2));
         to.node("QuantizeLinear", {"x", "one", "wide"}, {"q"})
             .node("DequantizeLinear", {"q", "one", "wide"}, {"xf"});
       }},
      {"numbers of run time",
       [&](OnnxBuilder& to) {
         quantised(to), to.node("ReduceMax", {"x"}, {"most"}, {OnnxBuilder::number("keepdims", 0)});
         to.floats("f", {16, 3}, std::vector<float>(48, 1)).node("Min", {"most", "f"}, {"g"});
         to.node("QuantizeLinear", {"g", "one", "z"}, {"v"})
             .node("DequantizeLinear", {"v", "one", "z"}, {"wf"});
       }},
      {"along axis 0",
       [&](OnnxBuilder& to) {
         quantised(to), to.floats("many", {16}, std::vector<float>(16, 1)).raw("w", {16, 3}, kInt8, ones);
         to.node("DequantizeLinear", {"w", "many"}, {"wf"}, {OnnxBuilder::number("axis", 0)});
       }},
  };
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.push_back(static_cast<float>(i % 5 + 1));
  for (const Other& other : others) {
    OnnxBuilder builder(21);
    builder.input("x", {"2", "16"}).floats("one", {}, {1}).floats("zero", {}, {0});
    builder.raw("z", {}, kUint8, packed_bytes({9}));
    other.inputs(builder);
    const ImportedModel model = test::must_import(builder.node("MatMul", {"xf", "wf"}, {"y"}).output("y"));
    ASSERT_EQ(model.quantised.reasons.size(), 1u) << other.reason;
    EXPECT_EQ(model.quantised.in_float, 1u);
    EXPECT_THAT(model.quantised.reasons[0], HasSubstr(other.reason));
    const std::vector<float> found = computed(model, x, {2, 16});
    ASSERT_EQ(found.size(), 6u) << other.reason;
    for (std::size_t i = 0; i < 6; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < 16; ++k) sum += x[i / 3 * 16 + k];
      EXPECT_EQ(found[i], sum) << other.reason;
    }
  }
}

// Weights beyond the size of other constants are converted once as well.
TEST(QuantisedPairsAndOthers, LargeWeightsAreConvertedAtImport) {
  constexpr std::int64_t kWide = 1100;
  OnnxBuilder builder;
  builder.input("x", {"1", std::to_string(kWide)})
      .floats("s", {}, {1})
      .raw("z", {}, kUint8, packed_bytes({0}));
  builder.raw("w", {kWide, kWide}, kInt8, std::string(kWide * kWide, '\1'))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"xf"})
      .node("DequantizeLinear", {"w", "s"}, {"wf"})
      .node("MatMul", {"xf", "wf"}, {"y"});
  const ImportedModel model = test::must_import(builder.output("y"));
  EXPECT_EQ(model.quantised.whole, 1u);
  const std::vector<float> found = computed(model, std::vector<float>(kWide, 3), {1, kWide});
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kWide));
  EXPECT_EQ(found[0], 3300);
  EXPECT_EQ(found.back(), 3300);
}

}  // namespace
}  // namespace imprint

// Numbers at the limits of their types: whole numbers that do not fit, casts of large numbers, bits beyond
// the last. Known numbers and those of run time give the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::kFloat;
using test::kInt32;
using test::kInt64;
using test::kUint8;
using test::OnnxBuilder;
using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;

using Doubles = std::vector<double>;

TEST(OnnxLimits, KnownNumbersAndThoseOfRunTimeAgree) {
  const auto both = [](const std::string& op, int to, float x) {
    OnnxBuilder known, later;
    const std::vector<OnnxBuilder::Attribute> attributes =
        to ? std::vector{OnnxBuilder::number("to", to)} : std::vector<OnnxBuilder::Attribute>();
    known.floats("x", {1}, {x}).node(op, {"x"}, {"y"}, attributes).output("y", {}, to ? to : kFloat);
    later.input("x", {"1"}).node(op, {"x"}, {"y"}, attributes).output("y", {}, to ? to : kFloat);
    return Doubles{test::run(known).at(0), test::run(later, {}, {{"x", {x}}}).at(0)};
  };
  constexpr int kBfloat16 = 16;
  EXPECT_THAT(both("Cast", kInt32, 3e38f), ElementsAre(2147483647, 2147483647));
  EXPECT_THAT(both("Cast", kInt32, -3e38f), ElementsAre(-2147483648.0, -2147483648.0));
  EXPECT_THAT(both("Cast", kUint8, 5e9f), ElementsAre(255, 255));
  EXPECT_THAT(both("Cast", kBfloat16, 1e10f), ElementsAre(9999220736.0, 9999220736.0));
  EXPECT_THAT(both("Sign", 0, std::nanf("")), ElementsAre(0, 0));
}

TEST(OnnxLimits, Uint64BeyondInt64IsRefused) {
  OnnxBuilder builder;
  const std::uint64_t large = std::uint64_t{1} << 63;
  builder
      .graph_field(5,
                   [&](protozero::pbf_writer& tensor) {
                     tensor.add_int64(1, 1);
                     tensor.add_int32(2, 13);  // uint64
                     tensor.add_string(9, reinterpret_cast<const char*>(&large), sizeof large);
                     tensor.add_string(8, "w");
                   })
      .node("Identity", {"w"}, {"y"})
      .output("y");
  EXPECT_THAT(refusal(builder).message, HasSubstr("9223372036854775808, expected at most 2^63 - 1"));
}

TEST(OnnxLimits, BitsBeyondTheNumberAreZero) {
  constexpr int kUint32 = 12;
  const auto shifted = [](const std::string& direction, const Doubles& x, const Doubles& bits) {
    OnnxBuilder builder;
    builder.input("x", {std::to_string(x.size())}, kUint32)
        .input("n", {std::to_string(x.size())}, kUint32)
        .node("BitShift", {"x", "n"}, {"y"}, {OnnxBuilder::text("direction", direction)})
        .output("y", {}, kUint32);
    return test::run(builder, {}, {{"x", x}, {"n", bits}});
  };
  EXPECT_THAT(shifted("LEFT", {1, 3, 5}, {32, 31, 0}), ElementsAre(0, -2147483648.0, 5));
  // 2^32 - 1 has the bits of -1.
  EXPECT_THAT(shifted("RIGHT", {-1, -1, -1, 8}, {32, 31, 0, 2}), ElementsAre(0, 1, -1, 2));
}

TEST(OnnxLimits, UniqueTellsLargeWholeNumbersApart) {
  OnnxBuilder builder;
  builder.longs("x", {3}, {9007199254740993, 9007199254740992, 9007199254740993})
      .node("Unique", {"x"}, {"u"})
      .node("Size", {"u"}, {"y"})
      .output("y", {}, kInt64);
  EXPECT_THAT(test::run(builder), ElementsAre(2));
}

}  // namespace
}  // namespace imprint

// uint32 on both sides of 2^31: known numbers and those of run time give the same, on device cpu.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "compute/include/imprint/compute.h"
#include "tests/unit/model_onnx_run.h"

namespace imprint {
namespace {

using test::kBool;
using test::kFloat;
using test::kInt32;
using test::kInt64;
using test::OnnxBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

using Numbers = std::vector<std::int64_t>;
using Attributes = std::vector<OnnxBuilder::Attribute>;

constexpr int kUint32 = 12;
constexpr std::int64_t kHalf = std::int64_t{1} << 31, kMost = (std::int64_t{1} << 32) - 1;

std::string bytes_of(const Numbers& numbers) {
  std::string bytes;
  for (const std::int64_t number : numbers) {
    const auto bits = static_cast<std::uint32_t>(number);
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

HostTensor held(const Numbers& numbers) {
  std::vector<std::int32_t> bits;
  for (const std::int64_t number : numbers)
    bits.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(number)));
  return HostTensor::from_ints(std::move(bits), {static_cast<std::int64_t>(numbers.size())});
}

// The operator's first output of inputs "a" and "b", which a run or the import knows.
struct Case {
  std::string op;
  Attributes attributes = {};
  int type = kUint32;  // of the output
  std::int64_t opset = 17;

  OnnxBuilder builder(const Numbers& a, const Numbers& b, bool known) const {
    OnnxBuilder out(opset);
    std::vector<std::string> names;
    for (const auto& [name, numbers] : {std::pair("a", &a), std::pair("b", &b)}) {
      if (numbers->empty()) continue;
      names.emplace_back(name);
      if (known)
        out.raw(name, {static_cast<std::int64_t>(numbers->size())}, kUint32, bytes_of(*numbers));
      else
        out.input(name, {std::to_string(numbers->size())}, kUint32);
    }
    return out.node(op, names, {"y"}, attributes).output("y", {}, type);
  }

  std::vector<double> run(const Numbers& a, const Numbers& b, bool known) const {
    const ImportedModel model = test::must_import(builder(a, b, known));
    const auto runtime = Runtime::create_on_cpu();
    if (model.outputs.empty() || !runtime) return {};
    ProgramDescription description;
    description.inputs = model.input_tensors();
    description.outputs = model.output_tensors();
    auto program = Program::compile(*runtime, description);
    EXPECT_TRUE(program.ok()) << (program ? "" : program.error().message);
    if (!program) return {};
    std::vector<HostTensor> inputs;
    if (!known) inputs.push_back(held(a));
    if (!known && !b.empty()) inputs.push_back(held(b));
    Session session(*runtime);
    const auto results = session.run(*program, inputs);
    EXPECT_TRUE(results.ok()) << (results ? "" : results.error().message);
    if (!results) return {};
    const HostTensor& y = results->at(0);
    if (y.dtype == DType::float32) return {y.floats.begin(), y.floats.end()};
    std::vector<double> numbers(y.ints.begin(), y.ints.end());
    if (type == kUint32)
      for (double& number : numbers) number = number < 0 ? number + 0x1p32 : number;
    return numbers;
  }
};

void expect(const Case& of, const Numbers& a, const Numbers& b, const std::vector<double>& y) {
  for (const bool known : {true, false})
    EXPECT_EQ(of.run(a, b, known), y) << of.op << (known ? ", known" : ", at run time");
}

const Numbers kA{0, 7, kHalf - 1, kHalf, kHalf + 5, kMost, kMost, 3000000000};
const Numbers kB{1, kMost, kHalf, kHalf - 1, 3, 1, kMost, 10};

TEST(OnnxUnsigned, ComparesByTheNumber) {
  expect({"Less", {}, kBool}, kA, kB, {1, 1, 1, 0, 0, 0, 0, 0});
  expect({"GreaterOrEqual", {}, kBool}, kA, kB, {0, 0, 0, 1, 1, 1, 1, 1});
  expect({"Min"}, kA, kB, {0, 7, 0x1p31 - 1, 0x1p31 - 1, 3, 1, 0x1p32 - 1, 10});
  expect({"Max"}, kA, kB, {1, 0x1p32 - 1, 0x1p31, 0x1p31, 0x1p31 + 5, 0x1p32 - 1, 0x1p32 - 1, 3e9});
  expect({"ReduceMax", {OnnxBuilder::number("keepdims", 0)}}, kA, {}, {0x1p32 - 1});
  expect({"ReduceMin", {OnnxBuilder::number("keepdims", 0)}}, {kHalf, kMost, 3000000000}, {}, {0x1p31});
  expect({"ArgMax", {OnnxBuilder::number("keepdims", 0)}, kInt64}, kA, {}, {5});
}

TEST(OnnxUnsigned, DividesByTheNumber) {
  expect({"Div"}, kA, kB, {0, 0, 0, 1, 715827884, 0x1p32 - 1, 1, 3e8});
  expect({"Mod"}, kA, kB, {0, 7, 0x1p31 - 1, 1, 1, 0, 0, 0});
  EXPECT_EQ((Case{"Div"}.run({kMost, 5, kHalf}, {0, 0, 0}, false)), (std::vector<double>{0, 0, 0}));
}

TEST(OnnxUnsigned, CastsAreNearestNumbers) {
  const Case to_float{"Cast", {OnnxBuilder::number("to", kFloat)}, kFloat};
  expect(to_float, {5, kHalf - 1, kHalf, kHalf + 128, kHalf + 129, kMost, 0xFFFFFF7F}, {},
         {5, 0x1p31, 0x1p31, 0x1p31, 0x1p31 + 256, 0x1p32, 4294967040.0});
  expect({"Cast", {OnnxBuilder::number("to", kInt32)}, kInt32}, {kHalf, kMost}, {}, {-0x1p31, -1});
  for (const float x : {0.5f, 7.9f, 0x1p31f, 3e9f, 4294967040.0f, 1e20f, -1.0f}) {
    OnnxBuilder known, later;
    known.floats("x", {1}, {x});
    later.input("x", {"1"});
    const double y = x > 0x1p32f ? 0x1p32 - 1 : x < 0 ? -1 : std::floor(static_cast<double>(x));
    for (OnnxBuilder* builder : {&known, &later}) {
      builder->node("Cast", {"x"}, {"y"}, {OnnxBuilder::number("to", kUint32)}).output("y", {}, kUint32);
      const double found = test::run(*builder, {}, {{"x", {static_cast<double>(x)}}}).at(0);
      EXPECT_EQ(std::fmod(found + 0x1p32, 0x1p32), std::fmod(y + 0x1p32, 0x1p32)) << x;
    }
  }
}

TEST(OnnxUnsigned, ArithmeticWraps) {
  expect({"Add"}, kA, kB, {1, 6, 0x1p32 - 1, 0x1p32 - 1, 0x1p31 + 8, 0, 0x1p32 - 2, 3000000010});
  expect({"Mul"}, {kMost, kHalf, 65537}, {kMost, 2, 65537}, {1, 0, 131073});
  expect({"Abs"}, kA, {}, {0, 7, 0x1p31 - 1, 0x1p31, 0x1p31 + 5, 0x1p32 - 1, 0x1p32 - 1, 3e9});
  expect({"Sign"}, kA, {}, {0, 1, 1, 1, 1, 1, 1, 1});
  expect({"BitShift", {OnnxBuilder::text("direction", "RIGHT")}}, {kMost, kHalf, kHalf}, {31, 1, kMost},
         {1, 0x1p30, 0});
  expect({"Pow"}, {3, kMost, 2, 0}, {20, kMost, kHalf, 0}, {3486784401, 0x1p32 - 1, 0, 1});
}

TEST(OnnxUnsigned, WhatHasNoFormIsRefused) {
  const Case to_long{"Cast", {OnnxBuilder::number("to", kInt64)}, kInt64};
  EXPECT_THAT(test::refusal(to_long.builder({1}, {}, false)).message,
              HasSubstr("a cast of uint32 to int64, whose numbers have 32 bits and a sign at run time"));
  EXPECT_THAT(to_long.run({7}, {}, true), ElementsAre(7)) << "known numbers are int64's own";
  EXPECT_THAT(test::refusal(Case{"ReduceMean"}.builder({1, 2}, {}, false)).message,
              HasSubstr("uint32 numbers of run time, which may be 2^31 or more"));
}

}  // namespace
}  // namespace imprint

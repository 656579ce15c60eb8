// The memory cap of the CPU's runtime: variables, intermediates, inputs and outputs count, and are freed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "compute/program/program.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "compute/tensor/composites/images.h"

namespace imprint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kCap = 1 << 20;

// A running sum over `elements`, which must be in memory.
ProgramDescription with_intermediates(std::int64_t elements) {
  const Tensor x = input("x", {16});
  const Tensor wide = cumsum(expand(reshape(x, {16, 1}), {16, elements / 16}), 1);
  return {.name = "wide", .inputs = {x}, .outputs = {sum(cumsum(wide, 0))}, .slot_count = 1};
}

TEST(CpuMemory, IntermediatesAreCapped) {
  const auto runtime = Runtime::create_on_cpu({}, kCap);
  EXPECT_TRUE(Program::compile(*runtime, with_intermediates(1 << 12)).ok());
  const auto program = Program::compile(*runtime, with_intermediates(std::int64_t{1} << 30));
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(program.error().message, AllOf(HasSubstr("'wide'"), HasSubstr("expected at most")));
}

TEST(CpuMemory, InputsAndOutputsOfAllSlotsAreCapped) {
  const auto runtime = Runtime::create_on_cpu({}, kCap);
  const Tensor x = input("x", {1 << 16});
  const ProgramDescription one{.name = "copy", .inputs = {x}, .outputs = {x * 2}, .slot_count = 1};
  ProgramDescription many = one;
  many.slot_count = 64;
  EXPECT_TRUE(Program::compile(*runtime, one).ok());
  const auto program = Program::compile(*runtime, many);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(program.error().message,
              AllOf(HasSubstr("262144 bytes of inputs and 262144 bytes of outputs in 64 slots"),
                    HasSubstr("expected at most 1048576 bytes")));
}

TEST(CpuMemory, VariablesAreCappedAndComeFree) {
  const auto runtime = Runtime::create_on_cpu({}, kCap);
  for (int turn = 0; turn < 3; ++turn) {
    const Variable most = Variable::zeros("most", {kCap / 4});
    EXPECT_TRUE(runtime->place(most).ok());
    EXPECT_TRUE(runtime->place(most).ok()) << "counted once";
    const Result<> more = runtime->place(Variable::zeros("more", {1}));
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().code, ErrorCode::out_of_device_memory);
    EXPECT_THAT(more.error().message, HasSubstr("variable 'more': found 4 bytes, expected at most 0"));
    runtime->set_cpu_memory_cap(2 * kCap);
    EXPECT_TRUE(runtime->place(Variable::zeros("more", {1})).ok());
    runtime->set_cpu_memory_cap(kCap);
  }
}

// An unrolled loop multiplies by the same weights, turned, in each of its steps.
TEST(CpuMemory, AConstantThatProductsReadTurnedIsCopiedOnce) {
  constexpr std::int64_t kSize = 256;
  constexpr std::size_t kBytes = kSize * kSize * sizeof(float);
  const std::vector<float> numbers(static_cast<std::size_t>(kSize * kSize), 0.01f);
  const Tensor x = input("x", {2, kSize}), weights = Tensor::from(numbers, {kSize, kSize});
  Tensor last = x;
  for (int step = 0; step < 32; ++step) last = tanh(matmul(last, transpose(weights)));
  const auto runtime = Runtime::create_on_cpu({}, 4 * kBytes);
  const auto program =
      Program::compile(*runtime, {.name = "steps", .inputs = {x}, .outputs = {last}, .slot_count = 1});
  EXPECT_TRUE(program.ok()) << program.error().message;
}

// Convolutions of 3 x 3 keep transformed weights, 16 values for 9, instead of others.
TEST(CpuMemory, TransformedWeightsOfAConvolutionAreKeptOnce) {
  constexpr std::int64_t kChannels = 128;
  constexpr std::size_t kBytes = kChannels * kChannels * 9 * sizeof(float);
  const std::vector<float> numbers(static_cast<std::size_t>(kChannels * kChannels * 9), 0.01f);
  const Tensor x = input("x", {1, kChannels, 12, 12}),
               weights = Tensor::from(numbers, {kChannels, kChannels, 3, 3});
  Tensor last = x;
  for (int step = 0; step < 8; ++step) last = tanh(convolution(last, weights, Tensor(), {.padding = 1}));
  const auto runtime = Runtime::create_on_cpu({}, 5 * kBytes);
  const auto program =
      Program::compile(*runtime, {.name = "steps", .inputs = {x}, .outputs = {last}, .slot_count = 1});
  EXPECT_TRUE(program.ok()) << program.error().message;
}

// As weights of 8 bits are, which products pack in pairs.
TEST(CpuMemory, AConstantOfWholeNumbersIsPackedOnce) {
  constexpr std::int64_t kSize = 256;
  const std::vector<float> numbers(static_cast<std::size_t>(kSize * kSize), 3.0f);
  const Tensor x = input("x", {2, kSize}), weights = Tensor::from(numbers, {kSize, kSize});
  Tensor last = x;
  for (int step = 0; step < 64; ++step) last = tanh(matmul(last, weights));
  const auto runtime = Runtime::create_on_cpu({}, kCap);
  const auto program =
      Program::compile(*runtime, {.name = "steps", .inputs = {x}, .outputs = {last}, .slot_count = 1});
  EXPECT_TRUE(program.ok()) << program.error().message;
}

// Their parts are constants of their own.
TEST(CpuMemory, FewCopiesOfConstantsAreMade) {
  constexpr std::int64_t kSize = 256, kParts = 64;
  const std::vector<float> numbers(static_cast<std::size_t>(kSize * (kSize + kParts)), 0.01f);
  const Tensor x = input("x", {2, kSize}), weights = Tensor::from(numbers, {kSize + kParts, kSize});
  std::vector<Tensor> results;
  for (std::int64_t part = 0; part < kParts; ++part)
    results.push_back(matmul(x, transpose(narrow(weights, 0, part, kSize))));
  const auto runtime = Runtime::create_on_cpu({}, 4 << 20);
  const auto program =
      Program::compile(*runtime, {.name = "parts", .inputs = {x}, .outputs = results, .slot_count = 1});
  EXPECT_TRUE(program.ok()) << program.error().message;
}

TEST(CpuMemory, WithoutACapNothingIsRefused) {
  const auto runtime = Runtime::create_on_cpu();
  EXPECT_TRUE(runtime->place(Variable::zeros("large", {1 << 22})).ok());
}

}  // namespace
}  // namespace imprint

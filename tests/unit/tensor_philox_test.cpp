#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compute/base/philox.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

// The known answers published with Random123 for philox4x32 with ten rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsTheUpper24Bits) {
  EXPECT_EQ(uniform_of(0), 0.0);
  EXPECT_EQ(uniform_of(0xff), 0.0);
  EXPECT_EQ(uniform_of(0x100), 0x1p-24);
  EXPECT_EQ(uniform_of(0xffffffff), 1 - 0x1p-24);
}

TEST(Philox, RandomUniformReadsGeneratorStreamAndIndex) {
  const Tensor generator = input("generator", {4}, DType::int32);
  const std::vector<double> values =
      reference::evaluate(random_uniform(generator, {2, 3}, 7), {{"generator", {11, -5, 3, 0}}});
  ASSERT_EQ(values.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(values[i], uniform_of(philox({i, 7, 3, 0}, {11, 0xfffffffb})[0]));
}

TEST(Random, MomentsAndRanges) {
  const reference::Bindings bindings{{"generator", {1, 2, 3, 0}}};
  const Tensor generator = input("generator", {4}, DType::int32);
  const auto moments = [&](const Tensor& tensor) {
    double sum = 0, squares = 0;
    const std::vector<double> values = reference::evaluate(tensor, bindings);
    for (double value : values) sum += value, squares += value * value;
    const double mean = sum / static_cast<double>(values.size());
    return std::pair{mean, squares / static_cast<double>(values.size()) - mean * mean};
  };
  const auto [uniform_mean, uniform_variance] = moments(random_uniform(generator, {100000}, 0));
  EXPECT_NEAR(uniform_mean, 0.5, 0.005);
  EXPECT_NEAR(uniform_variance, 1.0 / 12, 0.002);
  const auto [normal_mean, normal_variance] = moments(random_normal(generator, {100000}, 1));
  EXPECT_NEAR(normal_mean, 0, 0.01);
  EXPECT_NEAR(normal_variance, 1, 0.02);

  std::vector<int> counts(5, 0);
  for (double value : reference::evaluate(random_integers(generator, {50000}, Tensor(5), 2), bindings))
    ++counts.at(static_cast<std::size_t>(value));
  for (int count : counts) EXPECT_NEAR(count, 10000, 400);
  for (double value : reference::evaluate(random_integers(generator, {100}, Tensor(0), 2), bindings))
    EXPECT_EQ(value, 0);

  // softmax(log 1, log 2, log 5) = 1/8, 2/8, 5/8.
  const Tensor logits = expand(log(Tensor::from({1, 2, 5}, {3})), {40000, 3});
  std::vector<int> choices(3, 0);
  for (double value : reference::evaluate(random_categorical(generator, logits, 3), bindings))
    ++choices.at(static_cast<std::size_t>(value));
  EXPECT_NEAR(choices[0], 5000, 250);
  EXPECT_NEAR(choices[1], 10000, 350);
  EXPECT_NEAR(choices[2], 25000, 400);
}

TEST(Random, PermutationsHoldEveryPositionOnceForAnyCount) {
  const Tensor generator = input("generator", {4}, DType::int32);
  for (const std::int64_t count : {1, 2, 3, 64, 127, 1000}) {
    const std::vector<double> lines =
        reference::evaluate(random_permutation(generator, {3, count}, 5), {{"generator", {7, 8, 9, 0}}});
    for (std::int64_t line = 0; line < 3; ++line) {
      std::vector<double> sorted(lines.begin() + line * count, lines.begin() + (line + 1) * count);
      std::ranges::sort(sorted);
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(sorted[static_cast<std::size_t>(i)], static_cast<double>(i)) << count;
    }
    const std::vector<double> other =
        reference::evaluate(random_permutation(generator, {3, count}, 5), {{"generator", {7, 8, 10, 0}}});
    if (count >= 64) EXPECT_NE(lines, other);
  }
}

// All 24 orders of four elements occur about equally often, as do the positions of a larger permutation.
TEST(Random, PermutationsAreUniform) {
  constexpr int kDraws = 48000;
  const Tensor generator = input("generator", {4}, DType::int32);
  const std::vector<double> draws =
      reference::evaluate(random_permutation(generator, {kDraws, 4}, 0), {{"generator", {2, 3, 1, 0}}});
  std::map<std::uint32_t, int> orders;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    std::uint32_t order = 0;
    for (std::size_t i = 0; i < 4; ++i) order = order * 4 + static_cast<std::uint32_t>(draws[draw * 4 + i]);
    ++orders[order];
  }
  ASSERT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders)
    EXPECT_NEAR(count, kDraws / 24, 200) << order;  // 4.5 standard deviations

  std::vector<int> first(16), apart(16);
  for (std::uint32_t draw = 0; draw < 16000; ++draw) {
    const std::uint32_t a = philox_permuted(0, 256, draw, 0, 1, {2, 3}),
                        b = philox_permuted(1, 256, draw, 0, 1, {2, 3});
    ++first[a / 16];
    ++apart[((b - a) & 255) / 16];
  }
  for (int count : first) EXPECT_NEAR(count, 1000, 140);
  for (int count : apart) EXPECT_NEAR(count, 1000, 140);
}

TEST(Random, GeneratorAdvancesItsStep) {
  const Tensor generator = input("generator", {4}, DType::int32);
  EXPECT_EQ(reference::evaluate(generator_next(generator), {{"generator", {9, 8, 41, 0}}}),
            (std::vector<double>{9, 8, 42, 0}));
}

}  // namespace
}  // namespace imprint

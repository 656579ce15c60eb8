#include <gtest/gtest.h>

#include "compute/base/philox.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

// The known answers published with Random123 for philox4x32 with ten rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}), (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
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
  const std::vector<double> values = reference::evaluate(random_uniform(generator, {2, 3}, 7), {{"generator", {11, -5, 3, 0}}});
  ASSERT_EQ(values.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(values[i], uniform_of(philox({i, 7, 3, 0}, {11, 0xfffffffb})[0]));
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
  for (double value : reference::evaluate(random_integers(generator, {50000}, Tensor(5), 2), bindings)) ++counts.at(static_cast<std::size_t>(value));
  for (int count : counts) EXPECT_NEAR(count, 10000, 400);
  for (double value : reference::evaluate(random_integers(generator, {100}, Tensor(0), 2), bindings)) EXPECT_EQ(value, 0);

  // softmax(log 1, log 2, log 5) = 1/8, 2/8, 5/8.
  const Tensor logits = expand(log(Tensor::from({1, 2, 5}, {3})), {40000, 3});
  std::vector<int> choices(3, 0);
  for (double value : reference::evaluate(random_categorical(generator, logits, 3), bindings)) ++choices.at(static_cast<std::size_t>(value));
  EXPECT_NEAR(choices[0], 5000, 250);
  EXPECT_NEAR(choices[1], 10000, 350);
  EXPECT_NEAR(choices[2], 25000, 400);
}

TEST(Random, GeneratorAdvancesItsStep) {
  const Tensor generator = input("generator", {4}, DType::int32);
  EXPECT_EQ(reference::evaluate(generator_next(generator), {{"generator", {9, 8, 41, 0}}}), (std::vector<double>{9, 8, 42, 0}));
}

}  // namespace
}  // namespace imprint

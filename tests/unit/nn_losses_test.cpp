#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "tests/reference/interpreter.h"

namespace imprint::nn {
namespace {

using reference::evaluate;

const reference::Bindings kBindings{
    {"a", {1, -2, 3, 0.5}}, {"b", {0, 0, 0.5, 0.25}}, {"w", {1, 0, 2, 4}}, {"row", {1, 3}}};
const Tensor kA = input("a", {2, 2}), kB = input("b", {2, 2}), kW = input("w", {2, 2});

TEST(Losses, MeanSquaredError) {
  EXPECT_NEAR(evaluate(mse_loss(kA, kB), kBindings)[0], (1 + 4 + 6.25 + 0.0625) / 4, 1e-7);
  EXPECT_NEAR(evaluate(mse_loss(kA, kB, Reduction::sum), kBindings)[0], 11.3125, 1e-12);
  EXPECT_EQ(evaluate(mse_loss(kA, kB, Reduction::none), kBindings),
            (std::vector<double>{1, 4, 6.25, 0.0625}));
  EXPECT_NEAR(evaluate(mse_loss(kA, kB, Reduction::mean, kW), kBindings)[0], (1 + 12.5 + 0.25) / 4, 1e-7);
  EXPECT_NEAR(evaluate(mse_loss(kA, kB, Reduction::mean, input("row", {2})), kBindings)[0],
              (1 + 12 + 6.25 + 0.1875) / 4, 1e-7);
  const std::vector<double> groups = evaluate(mse_loss(kA, kB, Reduction::group_mean), kBindings);
  EXPECT_NEAR(groups[0], 2.5, 1e-7);
  EXPECT_NEAR(groups[1], 6.3125 / 2, 1e-7);
}

TEST(Losses, Huber) {
  const std::vector<double> found = evaluate(huber_loss(kA, kB, 1, Reduction::none), kBindings);
  const std::vector<double> expected{0.5, 1.5, 2, 0.5 * 0.0625};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
  const Result<std::vector<Tensor>> gradient =
      gradients(huber_loss(kA, kB, 1, Reduction::sum), std::span<const Tensor>(&kA, 1));
  ASSERT_TRUE(gradient);
  EXPECT_EQ(evaluate((*gradient)[0], kBindings),
            (std::vector<double>{1, -1, 1, 0.25}));  // clamped differences, at the corner too
}

TEST(Losses, CrossEntropy) {
  const Tensor logits = input("logits", {3, 3});
  const Tensor target = Tensor::from_ints(std::array{2, 0, -100}, {3});
  const reference::Bindings bindings{{"logits", {1, 2, 4, -1, 0, 300, 5, 5, 5}}};
  const std::vector<double> found = evaluate(cross_entropy(logits, target, Reduction::none), bindings);
  EXPECT_NEAR(found[0], std::log(std::exp(1.0) + std::exp(2.0) + std::exp(4.0)) - 4, 1e-12);
  EXPECT_NEAR(found[1], 301, 1e-9);
  EXPECT_EQ(found[2], 0);
  EXPECT_NEAR(
      evaluate(cross_entropy(logits, target, Reduction::sum, Tensor::from({2, 1, 1}, {3})), bindings)[0],
      2 * found[0] + found[1], 1e-9);
  const Result<std::vector<Tensor>> gradient =
      gradients(cross_entropy(logits, target, Reduction::sum), std::span<const Tensor>(&logits, 1));
  ASSERT_TRUE(gradient);
  const std::vector<double> slope = evaluate((*gradient)[0], bindings);
  const double total = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  EXPECT_NEAR(slope[0], std::exp(1.0) / total, 1e-12);
  EXPECT_NEAR(slope[2], std::exp(4.0) / total - 1, 1e-12);
  for (int k = 6; k < 9; ++k) EXPECT_NEAR(slope[static_cast<std::size_t>(k)], 0, 1e-12);
}

TEST(Losses, AWrongLabelHasLossNaN) {
  const Tensor logits = input("logits", {3, 2});
  const reference::Bindings bindings{{"logits", {1, 2, 3, 4, 5, 6}}};
  for (const int wrong : {-1, 2, 255}) {
    const Tensor target = Tensor::from_ints(std::array{0, wrong, -100}, {3});
    for (const bool by_options : {false, true}) {
      const Tensor loss = by_options ? cross_entropy(logits, target, {.reduction = Reduction::none})
                                     : cross_entropy(logits, target, Reduction::none);
      const std::vector<double> found = evaluate(loss, bindings);
      EXPECT_TRUE(std::isfinite(found[0]));
      EXPECT_TRUE(std::isnan(found[1])) << wrong;
      EXPECT_EQ(found[2], 0);
      const Result<std::vector<Tensor>> gradient = gradients(sum(loss), std::span<const Tensor>(&logits, 1));
      ASSERT_TRUE(gradient);
      EXPECT_EQ(evaluate((*gradient)[0], bindings)[2], 0);
    }
    EXPECT_TRUE(std::isnan(evaluate(cross_entropy(logits, target), bindings)[0]));
  }
}

TEST(Losses, LabelsMayBeNarrow) {
  const Tensor logits = input("logits", {2, 3}), target = Tensor::from_ints(std::array{2, 1}, {2});
  const reference::Bindings bindings{{"logits", {1, 2, 3, 4, 5, 9}}};
  const std::vector<double> wide = evaluate(cross_entropy(logits, target), bindings);
  for (const DType dtype : {DType::uint8, DType::int8, DType::int16, DType::uint16}) {
    EXPECT_EQ(evaluate(cross_entropy(logits, cast(target, dtype)), bindings), wide);
    EXPECT_EQ(evaluate(cross_entropy(logits, cast(target, dtype), ClassLossOptions{}), bindings), wide);
  }
}

TEST(Losses, MaskedLogitsStayFinite) {
  // A choice at -infinity that is not the target has loss 0 and gradient 0.
  const Tensor logits = input("logits", {1, 3});
  const Tensor loss = cross_entropy(logits, Tensor::from_ints(std::array{1}, {1}));
  const Result<std::vector<Tensor>> gradient = gradients(loss, std::span<const Tensor>(&logits, 1));
  ASSERT_TRUE(gradient);
  const reference::Bindings bindings{{"logits", {-INFINITY, 0, 0}}};
  EXPECT_NEAR(evaluate(loss, bindings)[0], std::log(2.0), 1e-7);
  EXPECT_EQ(evaluate((*gradient)[0], bindings), (std::vector<double>{0, -0.5, 0.5}));
}

TEST(Losses, Refusals) {
  EXPECT_NE(
      mse_loss(kA, input("t", {2})).error().message.find("found a [2, 2] and t [2], expected equal shapes"),
      std::string::npos);
  EXPECT_NE(cross_entropy(kA, kB).error().message.find("cross_entropy"), std::string::npos);
  EXPECT_FALSE(mse_loss(kA, kB, Reduction::mean, input("w", {3})).ok());
  EXPECT_FALSE(mse_loss(kA, kA + input("x", {7})).ok());
}

}  // namespace
}  // namespace imprint::nn

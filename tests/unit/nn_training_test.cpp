// Small networks learn, end to end in the oracle: layers, losses, gradients, clipping and optimisers.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/optimisers/optimiser.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using reference::Bindings;

std::vector<Update> training_step(const Tensor& loss, const Parameters& parameters,
                                  const Optimiser& optimiser, double rate, std::int64_t groups = 0) {
  const Result<std::vector<Tensor>> raw = gradients(loss, parameters.values());
  EXPECT_TRUE(raw) << (raw ? "" : raw.error().message);
  const Result<ClippedGradients> clipped = clip_by_global_norm(*raw, 1.0, groups);
  EXPECT_TRUE(clipped);
  const Result<std::vector<Update>> updates = optimiser.step(clipped->gradients, Tensor(rate));
  EXPECT_TRUE(updates) << (updates ? "" : updates.error().message);
  return *updates;
}

TEST(Training, XorIsLearned) {
  const Tensor x = Tensor::from({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const Tensor labels = Tensor::from_ints(std::array{0, 1, 1, 0}, {4});
  for (Activation activation : {Activation::tanh, Activation::relu, Activation::gelu}) {
    const Sequential network = mlp("xor", {2, 16, 2},
                                   {.activation = activation,
                                    .hidden_values = {Scheme::orthogonal, activation_gain(activation)},
                                    .output_values = {Scheme::orthogonal, 0.01},
                                    .bias_values = {Scheme::uniform_fan_in},
                                    .seed = 4});
    const Tensor loss = cross_entropy(network(x), labels);
    const Adam adam(network.parameters());
    const std::vector<Update> updates = training_step(loss, network.parameters(), adam, 0.03);
    Bindings state;
    EXPECT_NEAR(reference::evaluate(loss, state)[0], std::log(2.0), 0.05);
    for (int step = 0; step < 300; ++step) reference::run_updates(updates, state);
    EXPECT_LT(reference::evaluate(loss, state)[0], 0.02) << activation_name(activation);
    EXPECT_EQ(reference::evaluate(argmax(network(x), -1), state), (std::vector<double>{0, 1, 1, 0}));
  }
}

TEST(Training, LinearRegressionBySgd) {
  const Linear layer("line", 2, 1, {.seed = 1});
  std::vector<float> points, values;
  for (int i = 0; i < 20; ++i) {
    const float a = std::sin(static_cast<float>(i)), b = std::cos(static_cast<float>(i) * 1.7f);
    points.insert(points.end(), {a, b});
    values.push_back(3 * a - 2 * b + 0.5f);
  }
  const Tensor loss = mse_loss(layer(Tensor::from(points, {20, 2})), Tensor::from(values, {20, 1}));
  const Sgd sgd(layer.parameters(), {.momentum = 0.9});
  const std::vector<Update> updates = training_step(loss, layer.parameters(), sgd, 0.1);
  Bindings state;
  for (int step = 0; step < 400; ++step) reference::run_updates(updates, state);
  const std::vector<double> weight = reference::content(layer.weight(), state),
                            bias = reference::content(layer.bias(), state);
  EXPECT_NEAR(weight[0], 3, 1e-3);
  EXPECT_NEAR(weight[1], -2, 1e-3);
  EXPECT_NEAR(bias[0], 0.5, 1e-3);
}

TEST(Training, KennelLearnsSeparateTasks) {
  // Group g learns to multiply by g + 1; groups must not affect each other.
  const Sequential kennel =
      mlp("kennel", {1, 8, 1}, {.activation = Activation::tanh, .groups = 3, .seed = 2});
  std::vector<float> points, values;
  for (int g = 0; g < 3; ++g)
    for (int i = -4; i <= 4; ++i) {
      points.push_back(static_cast<float>(i) / 4);
      values.push_back(static_cast<float>((g + 1) * i) / 8);
    }
  const Tensor losses = mse_loss(kennel(Tensor::from(points, {3, 9, 1})), Tensor::from(values, {3, 9, 1}),
                                 Reduction::group_mean);
  const Adam adam(kennel.parameters(), {.groups = 3});
  const std::vector<Update> updates = training_step(sum(losses), kennel.parameters(), adam, 0.02, 3);
  Bindings state;
  for (int step = 0; step < 500; ++step) reference::run_updates(updates, state);
  for (double loss : reference::evaluate(losses, state)) EXPECT_LT(loss, 2e-3);
}

}  // namespace
}  // namespace imprint::nn

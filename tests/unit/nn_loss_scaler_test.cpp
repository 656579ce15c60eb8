#include "compute/nn/optimisers/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/nn/optimisers/optimiser.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using reference::Bindings;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double scale_of(const LossScaler& scaler, const Bindings& state, std::size_t group = 0) {
  return reference::content(scaler.state().find("scale")->variable, state)[group];
}

TEST(LossScaler, StartsAt65536AndDoublesAfterItsInterval) {
  const LossScaler scaler("net", {.growth_interval = 3});
  const std::vector<Update> updates = scaler.step(input("norm", {}));
  Bindings state{{"norm", {1.0}}};
  std::vector<double> scales;
  for (int step = 0; step < 7; ++step) {
    reference::run_updates(updates, state);
    scales.push_back(scale_of(scaler, state));
  }
  EXPECT_EQ(scales, (std::vector<double>{65536, 65536, 131072, 131072, 131072, 262144, 262144}));
}

TEST(LossScaler, HalvesOnNumbersThatAreNotFiniteAndRestartsCounting) {
  const LossScaler scaler("net", {.growth_interval = 2});
  const std::vector<Update> updates = scaler.step(input("norm", {}));
  Bindings state;
  std::vector<double> scales;
  for (const double norm : {1.0, kInfinity, 1.0, std::nan(""), 1.0, 1.0}) {
    state["norm"] = {norm};
    reference::run_updates(updates, state);
    scales.push_back(scale_of(scaler, state));
  }
  EXPECT_EQ(scales, (std::vector<double>{65536, 32768, 32768, 16384, 16384, 32768}));
}

TEST(LossScaler, StaysWithinItsBounds) {
  const LossScaler scaler("net", {.initial = 4, .growth_interval = 1, .least = 2, .most = 8});
  const std::vector<Update> updates = scaler.step(input("norm", {}));
  Bindings state{{"norm", {1.0}}};
  for (int step = 0; step < 3; ++step) reference::run_updates(updates, state);
  EXPECT_EQ(scale_of(scaler, state), 8);
  state["norm"] = {kInfinity};
  for (int step = 0; step < 4; ++step) reference::run_updates(updates, state);
  EXPECT_EQ(scale_of(scaler, state), 2);
}

TEST(LossScaler, AStaticScaleNeverChangesAndSkipsAllTheSame) {
  const LossScaler scaler("net", {.initial = 128, .growth_interval = 0});
  EXPECT_TRUE(scaler.step(input("norm", {})).empty());
  Bindings state{{"norm", {kInfinity}}};
  EXPECT_EQ(reference::evaluate(scaler.active(input("norm", {})), state)[0], 0);
  EXPECT_EQ(reference::evaluate(scaler.scaled(Tensor(2.0f)), state)[0], 256);
}

TEST(LossScaler, GroupsHaveScalesOfTheirOwn) {
  const LossScaler scaler("kennel", {.growth_interval = 1, .groups = 3});
  const Tensor norm = input("norm", {3});
  Bindings state{{"norm", {1.0, kInfinity, 2.0}}};
  EXPECT_EQ(reference::evaluate(scaler.active(norm), state), (std::vector<double>{1, 0, 1}));
  reference::run_updates(scaler.step(norm), state);
  for (const auto& [group, scale] : {std::pair<std::size_t, double>{0, 131072}, {1, 32768}, {2, 131072}})
    EXPECT_EQ(scale_of(scaler, state, group), scale);
}

// The optimiser gets the gradients of the unscaled loss, whatever the scale.
TEST(LossScaler, ClippingUndoesTheScaleFirst) {
  for (const std::int64_t groups : {0, 2}) {
    const Shape shape = groups > 0 ? Shape{groups, 3} : Shape{3};
    const Tensor g = input("g", shape), scale = input("scale", groups > 0 ? Shape{groups} : Shape{});
    Bindings state{{"scale", {1024}}, {"g", {0.3, -0.4, 1.2}}};
    if (groups > 0) state = {{"scale", {1024, 8}}, {"g", {0.3, -0.4, 1.2, 0.01, 0.02, -0.03}}};
    const Tensor spread =
        groups > 0 ? expand(unsqueeze(scale, 1), shape) : expand(reshape(scale, {1}), shape);
    for (const double most : {0.5, 100.0, kInfinity}) {
      const Tensor plain[] = {g}, scaled[] = {g * spread};
      const ClippedGradients expected =
          clip_by_global_norm(plain, std::isinf(most) ? 1e30 : most, groups).value();
      const ClippedGradients found = clip_by_global_norm(scaled, most, groups, scale).value();
      const auto near = [&](const Tensor& a, const Tensor& b) {
        const std::vector<double> x = reference::evaluate(a, state), y = reference::evaluate(b, state);
        ASSERT_EQ(x.size(), y.size());
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-7);
      };
      near(found.norm, expected.norm);
      near(found.gradients[0], expected.gradients[0]);
    }
  }
}

}  // namespace
}  // namespace imprint::nn

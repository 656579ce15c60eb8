#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using reference::Bindings;
using reference::content;
using reference::run_updates;

// Two parameters with fixed initial values; their gradients are inputs.
struct Bench {
  explicit Bench(std::int64_t groups = 0, const std::string& name = "net") {
    const std::int64_t count = std::max<std::int64_t>(groups, 1);
    std::vector<float> weight, bias;
    for (std::int64_t g = 0; g < count; ++g) {
      for (int k = 0; k < 6; ++k)
        weight.push_back(0.3f * static_cast<float>(k) - 0.7f + 0.1f * static_cast<float>(g));
      for (int k = 0; k < 2; ++k) bias.push_back(0.5f * static_cast<float>(k + g) - 0.2f);
    }
    const Shape weight_shape = groups > 0 ? Shape{groups, 3, 2} : Shape{3, 2},
                bias_shape = groups > 0 ? Shape{groups, 1, 2} : Shape{2};
    parameters.add("weight", Variable(name + ".weight", weight_shape, std::span<const float>(weight)));
    parameters.add("bias", Variable(name + ".bias", bias_shape, std::span<const float>(bias)));
    gradients = {input("weight_gradient", weight_shape), input("bias_gradient", bias_shape)};
  }
  Parameters parameters;
  std::vector<Tensor> gradients;
};

std::vector<double> gradient_values(std::int64_t count, int step, int phase) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(static_cast<double>(i) * 0.9 + step * 1.1 + phase));
  return values;
}

void feed(Bindings& state, int step, std::int64_t groups = 1) {
  state["weight_gradient"] = gradient_values(6 * groups, step, 0);
  state["bias_gradient"] = gradient_values(2 * groups, step, 5);
}

std::vector<Update> updates_of(const Result<std::vector<Update>>& updates) {
  EXPECT_TRUE(updates) << (updates ? "" : updates.error().message);
  return updates ? *updates : std::vector<Update>{};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                 const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance) << what << " element " << i;
}

// Adam for one number, as in the paper.
struct ScalarAdam {
  double theta, m = 0, v = 0;
  int t = 0;
  void step(double g, double rate, double decay, bool decoupled) {
    ++t;
    if (!decoupled) g += decay * theta;
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    const double next =
        theta - rate / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.99, t)) + 1e-5);
    theta = decoupled ? next - rate * decay * theta : next;
  }
};

TEST(Optimisers, AdamEqualsTheFormula) {
  for (bool decoupled : {false, true}) {
    const Bench bench;
    const Adam adam(bench.parameters,
                    {.beta2 = 0.99, .epsilon = 1e-5, .weight_decay = 0.1, .decoupled = decoupled});
    const std::vector<Update> updates = updates_of(adam.step(bench.gradients, input("rate", {})));
    Bindings state{{"rate", {0.05}}};
    std::vector<ScalarAdam> expected;
    for (double theta : reference::initial_values(bench.parameters[0].variable)) expected.push_back({theta});
    for (int step = 0; step < 7; ++step) {
      feed(state, step);
      const std::vector<double> g = state["weight_gradient"];
      run_updates(updates, state);
      for (std::size_t i = 0; i < 6; ++i) {
        expected[i].step(g[i], 0.05, 0.1, decoupled);
        EXPECT_NEAR(content(bench.parameters[0].variable, state)[i], expected[i].theta, 1e-6)
            << "step " << step;
      }
    }
    EXPECT_EQ(content(adam.state().find("step")->variable, state), std::vector<double>{7});
    EXPECT_EQ(adam.state().size(), 5u);
  }
}

TEST(Optimisers, AdamWDecaysByDefault) {
  const Bench bench;
  const Adam adam = adam_w(bench.parameters);
  Bindings state;
  state["weight_gradient"] = std::vector<double>(6, 0);
  state["bias_gradient"] = std::vector<double>(2, 0);
  run_updates(updates_of(adam.step(bench.gradients, 0.5f)), state);
  const std::vector<double> before = reference::initial_values(bench.parameters[0].variable),
                            after = content(bench.parameters[0].variable, state);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(after[i], before[i] * (1 - 0.5 * 0.01), 1e-7);
}

TEST(Optimisers, SgdWithMomentum) {
  for (bool nesterov : {false, true}) {
    const Bench bench;
    const Sgd sgd(bench.parameters, {.momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.01});
    const std::vector<Update> updates = updates_of(sgd.step(bench.gradients, 0.1f));
    Bindings state;
    std::vector<double> theta = reference::initial_values(bench.parameters[1].variable), velocity(2, 0);
    for (int step = 0; step < 5; ++step) {
      feed(state, step);
      for (std::size_t i = 0; i < 2; ++i) {
        const double g = state["bias_gradient"][i] + 0.01 * theta[i];
        velocity[i] = 0.9 * velocity[i] + g;
        theta[i] -= 0.1 * (nesterov ? g + 0.9 * velocity[i] : velocity[i]);
      }
      run_updates(updates, state);
      expect_near(content(bench.parameters[1].variable, state), theta, 1e-6, "bias");
    }
  }
  const Bench bench;
  const Sgd plain(bench.parameters);
  EXPECT_TRUE(plain.state().empty());
  EXPECT_EQ(updates_of(plain.step(bench.gradients, 1)).size(), 2u);
}

TEST(Optimisers, ClipScalesAllTogether) {
  const Bench bench;
  Bindings state;
  feed(state, 1);
  double squares = 0;
  for (const char* name : {"weight_gradient", "bias_gradient"})
    for (double g : state[name]) squares += g * g;
  const double norm = std::sqrt(squares);
  for (double limit : {0.5, 100.0}) {
    const Result<ClippedGradients> clipped = clip_by_global_norm(bench.gradients, limit);
    ASSERT_TRUE(clipped);
    EXPECT_NEAR(reference::evaluate(clipped->norm, state)[0], norm, 1e-9);
    const double scale = std::fmin(1, limit / (norm + 1e-6));
    const std::vector<double> found = reference::evaluate(clipped->gradients[0], state);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], state["weight_gradient"][i] * scale, 1e-8);
  }
  Bindings zero{{"weight_gradient", std::vector<double>(6, 0)}, {"bias_gradient", {0, 0}}};
  EXPECT_EQ(reference::evaluate(clip_by_global_norm(bench.gradients, 1)->gradients[1], zero),
            (std::vector<double>{0, 0}));
}

// Three networks in a kennel against three separate ones. The middle one skips some steps, once with a NaN
// gradient.
template <class Make>
void expect_groups_equal_separate_runs(Make make) {
  const Bench kennel(3, "kennel");
  const auto together = make(kennel.parameters, 3);
  const Result<ClippedGradients> clipped = clip_by_global_norm(kennel.gradients, 0.8, 3);
  ASSERT_TRUE(clipped);
  EXPECT_EQ(clipped->norm.shape(), Shape{3});
  const std::vector<Update> updates =
      updates_of(together->step(clipped->gradients, input("rate", {3}), input("active", {3})));
  Bindings state{{"rate", {0.1, 0.05, 0.2}}};

  std::vector<Bench> benches;
  std::vector<std::vector<Update>> single;
  std::vector<Bindings> states(3);
  for (std::size_t g = 0; g < 3; ++g) {
    benches.emplace_back(0, text("alone", g));
    const auto optimiser = make(benches[g].parameters, 0);
    single.push_back(updates_of(
        optimiser->step(clip_by_global_norm(benches[g].gradients, 0.8)->gradients, input("rate", {}))));
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<double> all = reference::initial_values(kennel.parameters[p].variable);
      const auto count = static_cast<std::ptrdiff_t>(all.size() / 3),
                 first = static_cast<std::ptrdiff_t>(g) * count;
      states[g][benches[g].parameters[p].variable.name()] =
          std::vector<double>(all.begin() + first, all.begin() + first + count);
    }
    states[g]["rate"] = {state["rate"][g]};
  }
  for (int step = 0; step < 6; ++step) {
    feed(state, step, 3);
    state["active"] = {1, step % 2 == 0 ? 1.0 : 0.0, 1};
    for (std::size_t g = 0; g < 3; ++g) {
      if (state["active"][g] == 0) continue;
      for (const char* name : {"weight_gradient", "bias_gradient"}) {
        const std::vector<double>& all = state[name];
        const auto count = static_cast<std::ptrdiff_t>(all.size() / 3),
                   first = static_cast<std::ptrdiff_t>(g) * count;
        states[g][name] = std::vector<double>(all.begin() + first, all.begin() + first + count);
      }
      run_updates(single[g], states[g]);
    }
    if (step == 3)
      state["weight_gradient"][7] = std::numeric_limits<double>::quiet_NaN();  // of the inactive group
    run_updates(updates, state);
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<double> found = content(kennel.parameters[p].variable, state);
      for (std::size_t g = 0; g < 3; ++g) {
        const std::vector<double> expected = content(benches[g].parameters[p].variable, states[g]);
        const auto count = static_cast<std::ptrdiff_t>(found.size() / 3),
                   first = static_cast<std::ptrdiff_t>(g) * count;
        expect_near(std::vector<double>(found.begin() + first, found.begin() + first + count), expected,
                    1e-12, "group");
      }
    }
  }
}

TEST(Optimisers, GroupsEqualSeparateRuns) {
  expect_groups_equal_separate_runs([](const Parameters& parameters, std::int64_t groups) {
    return std::make_unique<Adam>(parameters,
                                  AdamOptions{.weight_decay = 0.01, .decoupled = true, .groups = groups});
  });
  expect_groups_equal_separate_runs([](const Parameters& parameters, std::int64_t groups) {
    return std::make_unique<Sgd>(parameters, SgdOptions{.momentum = 0.9, .nesterov = true, .groups = groups});
  });
}

TEST(Optimisers, AnInactivePlainStepChangesNothing) {
  const Bench bench;
  const Adam adam(bench.parameters);
  const std::vector<Update> updates = updates_of(adam.step(bench.gradients, 0.1f, input("active", {})));
  Bindings state{{"active", {0}}};
  feed(state, 0);
  run_updates(updates, state);
  EXPECT_EQ(content(bench.parameters[0].variable, state),
            reference::initial_values(bench.parameters[0].variable));
  EXPECT_EQ(content(adam.state().find("step")->variable, state), std::vector<double>{0});
  state["active"] = {1};
  run_updates(updates, state);
  EXPECT_NE(content(bench.parameters[0].variable, state),
            reference::initial_values(bench.parameters[0].variable));
}

TEST(Optimisers, Refusals) {
  const Bench bench;
  const Adam adam(bench.parameters);
  const auto message = [](const Result<std::vector<Update>>& found) {
    return found ? std::string() : found.error().message;
  };
  EXPECT_NE(
      message(adam.step(std::span(bench.gradients).first(1), 0.1f)).find("found 1 gradient, expected 2"),
      std::string::npos);
  const std::vector<Tensor> wrong{bench.gradients[1], bench.gradients[0]};
  EXPECT_NE(message(adam.step(wrong, 0.1f)).find("found gradient [2] for weight, expected [3, 2]"),
            std::string::npos);
  EXPECT_NE(message(adam.step(bench.gradients, input("rate", {2}))).find("learning rate: found float32 [2]"),
            std::string::npos);
  EXPECT_NE(message(adam.step(bench.gradients, 0.1f, input("active", {2}))).find("active: found float32 [2]"),
            std::string::npos);
  const Adam grouped(bench.parameters, {.groups = 4});
  EXPECT_NE(message(grouped.step(bench.gradients, 0.1f)).find("expected a first extent of 4 groups"),
            std::string::npos);
}

TEST(Parameters, CopyAndFollow) {
  const Bench online(0, "online"), target(0, "target");
  Bindings state{{"online.weight", {1, 2, 3, 4, 5, 6}},
                 {"online.bias", {7, 8}},
                 {"target.weight", {0, 0, 0, 0, 0, 0}},
                 {"target.bias", {0, 0}}};
  run_updates(updates_of(follow_parameters(target.parameters, online.parameters, 0.25f)), state);
  EXPECT_EQ(state["target.bias"], (std::vector<double>{1.75, 2}));
  run_updates(updates_of(copy_parameters(target.parameters, online.parameters)), state);
  EXPECT_EQ(state["target.weight"], state["online.weight"]);
  Parameters fewer;
  fewer.add("bias", online.parameters[1].variable);
  EXPECT_FALSE(copy_parameters(target.parameters, fewer));
}

}  // namespace
}  // namespace imprint::nn

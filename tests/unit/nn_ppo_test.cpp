// The parts of proximal policy optimisation, against plain loops and differences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/learners/advantage.h"
#include "compute/nn/learners/ppo.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/learners/running_moments.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using reference::Bindings;
using reference::evaluate;
using ::testing::HasSubstr;

TEST(Advantage, IsTheSumOfDiscountedErrorsAndTellsTruncatedFromTerminated) {
  // Two agents, five steps. The first terminates at step 1 and is truncated at step 3, where its state's
  // value is 2. The second continues.
  constexpr double kDiscount = 0.9, kDecay = 0.8;
  const std::vector<double> reward{1, 2, 3, 4, -1, 0, 2, 1, 0.5, 3},
      value{0.5, 1, 1.5, -1, 2, 0.3, 1, 0.7, -0.4, 0.2};
  const std::vector<double> next{1.5, -1, 0, 0.3, 1, 0.7, 2, 0.2, 9, 8},
      continues{1, 1, 0, 1, 1, 1, 0, 1, 1, 1};
  const Shape shape{5, 2};
  const Advantages found = generalised_advantages(
      {input("reward", shape), input("value", shape), input("next", shape), input("continues", shape)},
      {.discount = kDiscount, .decay = kDecay});
  const Bindings bindings{{"reward", reward}, {"value", value}, {"next", next}, {"continues", continues}};
  const std::vector<double> advantage = evaluate(found.advantage, bindings),
                            target = evaluate(found.value_target, bindings);
  for (std::size_t agent = 0; agent < 2; ++agent)
    for (std::size_t t = 0; t < 5; ++t) {
      double expected = 0, factor = 1;
      for (std::size_t k = t; k < 5; ++k) {
        const std::size_t i = 2 * k + agent;
        expected += factor * (reward[i] + kDiscount * next[i] - value[i]);
        if (continues[i] == 0) break;
        factor *= kDiscount * kDecay;
      }
      EXPECT_NEAR(advantage[2 * t + agent], expected, 1e-6) << t << " " << agent;
      EXPECT_NEAR(target[2 * t + agent], expected + value[2 * t + agent], 1e-6);
    }
}

// Two agents, five steps, by the sums of Espeholt et al., 2018, section 4.1, not by a recurrence.
TEST(Advantage, OfVtraceIsTheSumOfBoundedErrorsAndTraces) {
  constexpr double kDiscount = 0.9, kDecay = 0.8, kMostRatio = 1.5, kMostTrace = 0.9;
  const std::vector<double> reward{1, 2, 3, 4, -1, 0, 2, 1, 0.5, 3},
      value{0.5, 1, 1.5, -1, 2, 0.3, 1, 0.7, -0.4, 0.2}, next{1.5, -1, 0, 0.3, 1, 0.7, 2, 0.2, 9, 8},
      continues{1, 1, 0, 1, 1, 1, 0, 1, 1, 1}, log_ratio{0.2, -1, 0, 3, -0.3, -50, 0.1, 0.4, -2, 60};
  const Shape shape{5, 2};
  const Advantages found = vtrace_advantages(
      {input("reward", shape), input("value", shape), input("next", shape), input("continues", shape)},
      input("log_ratio", shape),
      {.discount = kDiscount, .decay = kDecay, .most_ratio = kMostRatio, .most_trace = kMostTrace});
  const Bindings bindings{{"reward", reward},
                          {"value", value},
                          {"next", next},
                          {"continues", continues},
                          {"log_ratio", log_ratio}};
  const std::vector<double> advantage = evaluate(found.advantage, bindings),
                            target = evaluate(found.value_target, bindings);
  const auto rho = [&](std::size_t i) { return std::min(kMostRatio, std::exp(log_ratio[i])); };
  const auto error = [&](std::size_t i) { return reward[i] + kDiscount * next[i] - value[i]; };
  const auto v = [&](std::size_t t, std::size_t agent) {
    double sum = value[2 * t + agent], factor = 1;
    for (std::size_t k = t; k < 5; ++k) {
      const std::size_t i = 2 * k + agent;
      sum += factor * rho(i) * error(i);
      if (continues[i] == 0) break;
      factor *= kDiscount * kDecay * std::min(kMostTrace, std::exp(log_ratio[i]));
    }
    return sum;
  };
  for (std::size_t agent = 0; agent < 2; ++agent)
    for (std::size_t t = 0; t < 5; ++t) {
      const std::size_t i = 2 * t + agent;
      EXPECT_NEAR(target[i], v(t, agent), 1e-6) << t << " " << agent;
      const bool goes_on = t < 4 && continues[i] != 0;
      const double later = next[i] + (goes_on ? v(t + 1, agent) - value[i + 2] : 0);
      EXPECT_NEAR(advantage[i], rho(i) * (reward[i] + kDiscount * later - value[i]), 1e-6) << t << agent;
    }
}

TEST(Advantage, OfVtraceHasTheTargetsOfGeneralisedAdvantagesWhereNothingIsOld) {
  const Shape shape{4, 1};
  const Trajectories steps{input("reward", shape), input("value", shape), input("next", shape),
                           input("continues", shape)};
  const Bindings bindings{{"reward", {1, -2, 0.5, 3}},
                          {"value", {0.5, 1, 1.5, -1}},
                          {"next", {1, 1.5, -1, 2}},
                          {"continues", {1, 1, 1, 1}}};
  const std::vector<double> expected =
      evaluate(generalised_advantages(steps, {.discount = 0.9, .decay = 0.7}).value_target, bindings);
  const std::vector<double> found = evaluate(
      vtrace_advantages(steps, zeros(shape), {.discount = 0.9, .decay = 0.7}).value_target, bindings);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(Advantage, StandardisesWithTheUnbiasedDeviation) {
  const Tensor x = input("x", {2, 4});
  const std::vector<double> found = evaluate(standardised(x), {{"x", {1, 2, 3, 6, 5, 5, 5, 5}}});
  const double deviation = std::sqrt((4 + 1 + 0 + 9) / 3.0);
  EXPECT_NEAR(found[0], -2 / deviation, 1e-6);
  EXPECT_NEAR(found[3], 3 / deviation, 1e-6);
  for (int i = 4; i < 8; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], 0);
  EXPECT_EQ(evaluate(standardised(input("y", {2, 1})), {{"y", {7, 8}}}), (std::vector<double>{7, 8}));
}

TEST(RunningMoments, AreThoseOfEverythingSeen) {
  const RunningMoments moments("seen", 2);
  const Tensor rows = input("rows", {3, 2});
  std::vector<Update> updates;
  moments.assign(moments.with(rows), updates);
  Bindings state;
  std::vector<double> all;
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<double> values;
    for (int i = 0; i < 6; ++i) values.push_back(std::sin(batch * 7 + i * 3.1) * (i % 2 ? 5 : 1) + batch);
    all.insert(all.end(), values.begin(), values.end());
    state["rows"] = values;
    reference::run_updates(updates, state);
  }
  for (std::size_t column = 0; column < 2; ++column) {
    double mean = 0, variance = 0;
    for (std::size_t row = 0; row < 12; ++row) mean += all[2 * row + column] / 12;
    for (std::size_t row = 0; row < 12; ++row) variance += std::pow(all[2 * row + column] - mean, 2) / 12;
    EXPECT_NEAR(state.at("seen.mean")[column], mean, 1e-4);
    EXPECT_NEAR(state.at("seen.variance")[column], variance, 1e-3);
    const double probe = evaluate(normalise(input("x", {1, 2}), moments.now()), [&] {
      Bindings bindings = state;
      bindings["x"] = {100, 2};
      return bindings;
    }())[column];
    EXPECT_NEAR(probe, std::min(10.0, ((column == 0 ? 100 : 2) - mean) / std::sqrt(variance)), 1e-3);
  }
}

// Two branches, the second partly masked, and one continuous number.
struct Mixed {
  ActionSpace space{{3, 2}, 1};
  Tensor outputs = input("outputs", {2, 6}), log_deviation = input("log_deviation", {1}),
         mask = input("mask", {2, 5}, DType::boolean);
  ActionDistribution distribution{space, outputs, log_deviation, mask};
  Actions actions{input("discrete", {2, 2}, DType::int32), input("continuous", {2, 1})};
  Bindings bindings{{"outputs", {0.1, -0.4, 0.9, 2, 1, 0.3, 1, 0, -1, 0.5, 0.6, -0.2}},
                    {"log_deviation", {-0.5}},
                    {"mask", {1, 1, 0, 1, 1, 1, 1, 1, 0, 1}},
                    {"discrete", {1, 0, 2, 1}},
                    {"continuous", {0.7, 0.1}}};
};

TEST(ActionDistribution, AddsItsParts) {
  const Mixed mixed;
  const double z = (0.7 - 0.3) / std::exp(-0.5);
  const double first = -0.4 - std::log(std::exp(0.1) + std::exp(-0.4)),
               second = 2 - std::log(std::exp(2) + std::exp(1));
  const double number = -0.5 * z * z + 0.5 - 0.5 * std::log(2 * std::numbers::pi);
  EXPECT_NEAR(evaluate(mixed.distribution.log_probability(mixed.actions), mixed.bindings)[0],
              first + second + number, 1e-6);
  const auto entropy = [](double a, double b) {
    const double p = std::exp(a) / (std::exp(a) + std::exp(b));
    return -p * std::log(p) - (1 - p) * std::log(1 - p);
  };
  const double spread = -0.5 + 0.5 * std::log(2 * std::numbers::pi * std::numbers::e);
  EXPECT_NEAR(evaluate(mixed.distribution.entropy(), mixed.bindings)[0],
              entropy(0.1, -0.4) + entropy(2, 1) + spread, 1e-6);
  EXPECT_EQ(evaluate(mixed.distribution.most_likely().discrete, mixed.bindings),
            (std::vector<double>{0, 0, 0, 1}));
}

TEST(ActionDistribution, MaskedLossHasTheGradientOfDifferences) {
  const Mixed mixed;
  PpoEvaluation now{mixed.distribution.log_probability(mixed.actions), mixed.distribution.entropy(),
                    input("value", {2})};
  PpoBatch batch;
  batch.log_probability = input("old", {2});
  batch.advantage = input("advantage", {2});
  batch.value_target = input("target", {2});
  batch.value = input("old_value", {2});
  const PpoLoss loss = ppo_loss(now, batch,
                                {.clip_range = input("clip", {}),
                                 .entropy_coefficient = 0.1,
                                 .value_coefficient = 0.5,
                                 .clip_value = true});
  Bindings bindings = mixed.bindings;
  bindings.insert({{"value", {0.4, -0.6}},
                   {"old", {-2.4, -2.9}},
                   {"advantage", {1.5, -0.5}},
                   {"target", {1, -1}},
                   {"old_value", {0.35, -0.2}},
                   {"clip", {0.2}}});
  const std::array by{mixed.outputs, mixed.log_deviation, now.value};
  const auto found = gradients(loss.total, by);
  ASSERT_TRUE(found) << found.error().message;
  for (std::size_t k = 0; k < by.size(); ++k) {
    const std::string& name = by[k].node()->label;
    const std::vector<double> gradient = evaluate((*found)[k], bindings);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto moved = [&](double step) {
        Bindings other = bindings;
        other[name][i] += step;
        return evaluate(loss.total, other)[0];
      };
      EXPECT_NEAR(gradient[i], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-6) << name << " " << i;
    }
  }
  EXPECT_EQ(evaluate((*found)[0], bindings)[2], 0);  // masked
}

TEST(PpoLoss, ByLogitsIsTheSame) {
  const Tensor logits = input("logits", {4, 3}), values = input("values", {4});
  PpoBatch batch{input("action", {4}, DType::int32), input("old", {4}), input("advantage", {4}),
                 input("target", {4}), Tensor()};
  const ActionDistribution distribution({{3}, 0}, logits, Tensor());
  const PpoEvaluation now{distribution.log_probability({unsqueeze(batch.action, 1), Tensor()}),
                          distribution.entropy(), values};
  const Bindings bindings{{"logits", {1, 2, 3, 0, 0, 0, -1, 1, 0, 0.5, 0.2, 0.1}},
                          {"values", {1, 2, 3, 4}},
                          {"action", {0, 1, 2, 0}},
                          {"old", {-2, -1.1, -1.3, -0.4}},
                          {"advantage", {1, -1, 2, 0.5}},
                          {"target", {0, 2, 5, 3}}};
  const PpoLossOptions options{.entropy_coefficient = 0.02};
  EXPECT_NEAR(evaluate(ppo_loss(now, batch, options).total, bindings)[0],
              evaluate(ppo_loss(logits, values, batch, options).total, bindings)[0], 1e-9);
}

TEST(Ppo, RefusesInconsistentOptions) {
  const auto message = [](auto&& change) {
    PpoOptions options;
    options.agents = 2;
    options.action.branches = {2};
    change(options);
    const auto made = Ppo::create(options);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(message([](PpoOptions&) {}), "");
  EXPECT_THAT(message([](PpoOptions& options) { options.action.branches.clear(); }),
              HasSubstr("found no actions"));
  EXPECT_THAT(message([](PpoOptions& options) { options.steps = 100; }),
              HasSubstr("minibatches of 256, expected a divisor of 2 agents x 100 steps = 200"));
  EXPECT_THAT(message([](PpoOptions& options) { options.agents = 0; }),
              HasSubstr("found agents 0, expected at least 1"));
  const auto numbers = [](PpoOptions& options) {
    options.action.branches.clear();
    options.action.continuous = 1;
    options.masked = true;
  };
  EXPECT_THAT(message(numbers), HasSubstr("Only discrete choices can be masked"));
}

}  // namespace
}  // namespace imprint::nn

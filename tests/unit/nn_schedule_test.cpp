// Schedules against PyTorch's recursions, written here as loops; averages and initial values.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "compute/base/text.h"
#include "compute/nn/initialise.h"
#include "compute/nn/optimisers/averaging.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/optimisers/schedule.h"
#include "compute/program/run.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {

using Numbers = std::vector<double>;

Numbers rates(const Schedule& schedule, std::int64_t steps) {
  return reference::evaluate(schedule.at(arange(steps)));
}

// The oracle's constants are float32.
void expect_rates(const Schedule& schedule, const Numbers& expected) {
  const Numbers found = rates(schedule, static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6 * (1 + std::fabs(expected[i]))) << "step " << i;
}

TEST(Schedules, Factors) {
  Numbers linear, exponential, step, milestones, quadratic;
  double decayed = 2;
  for (int i = 0; i < 25; ++i) {
    linear.push_back(0.5 + (2 - 0.5) * std::min(i, 10) / 10.0);
    exponential.push_back(decayed);
    decayed *= 0.9;
    step.push_back(2 * std::pow(0.1, i / 7));
    milestones.push_back(2 * std::pow(0.5, (i >= 3) + (i >= 4) + (i >= 20)));
    quadratic.push_back(2 * std::pow(1 - std::min(i, 10) / 10.0, 2));
  }
  expect_rates(Schedule::linear(0.5, 2, 10), linear);
  expect_rates(Schedule::exponential(2, 0.9), exponential);
  expect_rates(Schedule::step(2, 7), step);
  expect_rates(Schedule::multi_step(2, {3, 4, 20}, 0.5), milestones);
  expect_rates(Schedule::polynomial(2, 10, 2), quadratic);
  expect_rates(0.25, Numbers(5, 0.25));
  EXPECT_EQ(Schedule(0.25).at(input("step", {1}, DType::int32)).shape(), Shape{1});
}

TEST(Schedules, Cosines) {
  // PyTorch's recursion for CosineAnnealingLR.
  Numbers cosine{2};
  for (int i = 1; i <= 20; ++i)
    cosine.push_back((1 + std::cos(std::numbers::pi * i / 20)) /
                         (1 + std::cos(std::numbers::pi * (i - 1) / 20)) * (cosine.back() - 0.5) +
                     0.5);
  cosine.push_back(0.5);  // stays; PyTorch rises again
  expect_rates(Schedule::cosine(2, 20, 0.5), cosine);
  for (const int growth : {1, 2, 3}) {
    Numbers restarts;
    int now = 0, period = 4;
    for (int i = 0; i < 60; ++i) {
      restarts.push_back(0.5 + 1.5 * (1 + std::cos(std::numbers::pi * now / period)) / 2);
      if (++now == period) now = 0, period *= growth;
    }
    expect_rates(Schedule::cosine_restarts(2, 4, growth, 0.5), restarts);
  }
  // Exact at a restart far away: 1000 (2^14 - 1).
  const Tensor late = Tensor::from_ints(std::array{16382999, 16383000}, {2});
  const Numbers found = reference::evaluate(Schedule::cosine_restarts(1, 1000, 2).at(late));
  EXPECT_NEAR(found[0], 0, 1e-6);
  EXPECT_NEAR(found[1], 1, 1e-6);
}

TEST(Schedules, OneCycle) {
  const auto between = [](double from, double to, double share, bool linear) {
    return linear ? from + (to - from) * share
                  : to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
  };
  for (const bool linear : {false, true})
    for (const bool three : {false, true}) {
      Numbers expected;
      for (int i = 0; i < 50; ++i) {
        const double top = 0.3 * 50 - 1, fallen = three ? 2 * 0.3 * 50 - 2 : 49;
        const double start = 1.0 / 25, end = start / 1e4;
        expected.push_back(i <= top      ? between(start, 1, i / top, linear)
                           : i <= fallen ? between(1, three ? start : end, (i - top) / (fallen - top), linear)
                                         : between(start, end, (i - fallen) / (49 - fallen), linear));
      }
      expect_rates(Schedule::one_cycle(1, 50, {.linear = linear, .three_phases = three}), expected);
    }
  EXPECT_NEAR(rates(Schedule::one_cycle(1, 50), 51)[50], 1.0 / 25 / 1e4, 1e-9);
}

TEST(Schedules, NoamAndComposed) {
  Numbers noam, warm, sequence;
  for (int i = 0; i < 40; ++i) {
    noam.push_back(2 / std::sqrt(64.0) * std::fmin(1 / std::sqrt(i + 1.0), (i + 1) * std::pow(10, -1.5)));
    warm.push_back(0.5 * std::pow(0.9, i) * std::fmin(1, 0.1 + 0.9 * i / 5.0));
    sequence.push_back(i < 10 ? 1 - i / 20.0 : 0.5 * std::pow(0.9, i - 10));
  }
  expect_rates(Schedule::noam(64, 10, 2), noam);
  expect_rates(Schedule::exponential(0.5, 0.9).warmed_up(5, 0.1), warm);
  expect_rates(Schedule::linear(1, 0.5, 10).then(10, Schedule::exponential(0.5, 0.9)), sequence);
}

TEST(Schedules, CountInsideTheRecordedStep) {
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const Variable x("x", {1}, std::vector<float>{0});
  Parameters parameters;
  parameters.add("x", x);
  const ScheduledRate rate("x", Schedule::linear(1, 0, 4));
  const std::vector<Tensor> gradient{ones({1})};
  const Tensor active = input("active", {});
  auto updates = Sgd(parameters).step(gradient, rate.value(), active);
  ASSERT_TRUE(updates) << updates.error().message;
  rate.advance(*updates, active);
  auto program = Program::compile(*runtime, {.name = "steps", .inputs = {active}, .updates = *updates});
  ASSERT_TRUE(program) << program.error().message;
  for (const float alive : {1.0f, 0.0f, 1.0f, 1.0f, 1.0f, 1.0f})
    ASSERT_TRUE(session.run(*program, std::vector{HostTensor::from({alive}, {})}));
  const auto found = session.read(std::array{x, rate.state()[0].variable});
  ASSERT_TRUE(found);
  EXPECT_NEAR((*found)[0].floats[0], -(1 + 0.75 + 0.5 + 0.25), 1e-6);
  EXPECT_EQ((*found)[1].ints[0], 5);
}

TEST(Averages, FollowAndSwap) {
  for (const double decay : {0.0, 0.9}) {
    Parameters parameters;
    parameters.add("w", Variable("w", {2}, std::vector<float>{1, -1}));
    const AveragedParameters averages("average", parameters, {.decay = decay});
    const Tensor gradient = input("g", {2});
    auto updates = Sgd(parameters).step(std::span(&gradient, 1), 0.5f);
    ASSERT_TRUE(updates);
    averages.follow(*updates);
    reference::Bindings state;
    Numbers w{1, -1}, average;
    for (int t = 0; t < 6; ++t) {
      state["g"] = {std::sin(t), std::cos(t)};
      reference::run_updates(*updates, state);
      for (std::size_t k = 0; k < 2; ++k) w[k] -= 0.5 * state["g"][k];
      if (t == 0) average = w;
      for (std::size_t k = 0; k < 2; ++k)
        average[k] += (decay > 0 ? t == 0 ? 1 : 1 - decay : 1.0 / (t + 1)) * (w[k] - average[k]);
    }
    for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(state["average.w"][k], average[k], 1e-6);
    reference::run_updates(averages.swap(), state);
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_NEAR(state["w"][k], average[k], 1e-6);
      EXPECT_NEAR(state["average.w"][k], w[k], 1e-6);
    }
    EXPECT_EQ(averages.parameters()[0].name, "w");
    EXPECT_NE(averages.state().find("average.w"), nullptr);
    EXPECT_EQ(state["average.count"], Numbers{6});
  }
}

struct Sample {
  double mean = 0, deviation = 0, least = 1e9, largest = -1e9;
};
Sample sample_of(const Initialisation& initialisation) {
  const auto values = initial_values(initialisation, "w", {.rows = 200, .columns = 300, .seed = 7});
  Sample s;
  for (const float value : values) {
    s.mean += value / 60000.0;
    s.deviation += static_cast<double>(value) * value / 60000.0;
    s.least = std::fmin(s.least, value);
    s.largest = std::fmax(s.largest, value);
  }
  s.deviation = std::sqrt(std::fmax(0, s.deviation - s.mean * s.mean));
  return s;
}

TEST(InitialValuesOf, Distributions) {
  Sample s = sample_of({.scheme = Scheme::constant, .gain = 0.25});
  EXPECT_EQ(s.least, 0.25);
  EXPECT_EQ(s.largest, 0.25);
  s = sample_of({.scheme = Scheme::uniform, .gain = 0.5, .mean = 2});
  EXPECT_NEAR(s.mean, 2, 0.01);
  EXPECT_NEAR(s.deviation, 0.5 / std::sqrt(3.0), 0.01);
  EXPECT_GE(s.least, 1.5);
  EXPECT_LE(s.largest, 2.5);
  s = sample_of({.scheme = Scheme::normal, .gain = 0.5, .mean = -1});
  EXPECT_NEAR(s.mean, -1, 0.01);
  EXPECT_NEAR(s.deviation, 0.5, 0.01);
  EXPECT_LT(s.least, -2.5);
  s = sample_of({.scheme = Scheme::truncated_normal, .gain = 1, .low = -1, .high = 2});
  // A standard normal between -1 and 2 has the mean (phi(-1) - phi(2)) / (Phi(2) - Phi(-1)).
  EXPECT_NEAR(s.mean, (0.24197072 - 0.05399097) / 0.81859461, 0.01);
  EXPECT_GE(s.least, -1);
  EXPECT_LE(s.largest, 2);
  // Far from the mean, where few draws fall: an exponential of rate about 6.16 above 6.
  s = sample_of({.scheme = Scheme::truncated_normal, .gain = 1, .low = 6, .high = 9});
  EXPECT_NEAR(s.mean, 6.158, 0.005);
  EXPECT_GE(s.least, 6);
}

TEST(InitialValuesOf, SparseAndIdentity) {
  const auto sparse = initial_values({.scheme = Scheme::sparse, .sparsity = 0.33}, "w",
                                     {.rows = 50, .columns = 10, .seed = 1});
  std::vector<int> zeros_at(10);
  for (std::size_t row = 0; row < 50; ++row) {
    int zeros = 0;
    for (std::size_t k = 0; k < 10; ++k)
      if (sparse[10 * row + k] == 0) ++zeros, ++zeros_at[k];
    EXPECT_EQ(zeros, 4);
  }
  for (const int count : zeros_at) EXPECT_GT(count, 5);  // 20 on average
  const auto eye = initial_values({.scheme = Scheme::identity, .gain = 2}, "w", {.rows = 2, .columns = 3});
  EXPECT_EQ(eye, (std::vector<float>{2, 0, 0, 0, 2, 0}));
  const InitialValues wanted = convolution_values({4, 3, 3, 5});
  EXPECT_EQ(wanted.fan_in, 45);
  EXPECT_EQ(wanted.fan_out, 60);
  EXPECT_EQ(wanted.centre, 7);
  const auto dirac = initial_values({Scheme::identity}, "w", wanted);
  ASSERT_EQ(dirac.size(), 180u);
  for (std::size_t i = 0; i < 180; ++i)
    EXPECT_EQ(dirac[i], i == 7 || i == 45 + 15 + 7 || i == 90 + 30 + 7 ? 1 : 0) << i;
}

TEST(ParameterCollections, PatternsSelectAndMap) {
  Parameters all;
  for (const char* name : {"backbone.0.weight", "backbone.0.bias", "head.weight", "head.bias"})
    all.add(name, Variable(name, {1}, std::vector<float>{3}));
  const auto names = [](const Parameters& parameters) {
    std::string list;
    for (const Parameter& parameter : parameters) list += parameter.name + " ";
    return list;
  };
  EXPECT_EQ(names(all.matching("head.*")), "head.weight head.bias ");
  EXPECT_EQ(names(all.without("backbone.*")), "head.weight head.bias ");
  EXPECT_EQ(names(all.matching("*.bias")), "backbone.0.bias head.bias ");
  EXPECT_EQ(names(all.matching("*0*s")), "backbone.0.bias ");
  EXPECT_EQ(names(all.matching("head")), "");
  EXPECT_EQ(names(all.matching("*")), names(all));
  EXPECT_EQ(names(all.matching("")), "");
  EXPECT_EQ(names(all.matching("*e*a*.*i*s*")), "head.bias ");
  reference::Bindings state;
  const auto halved =
      map_parameters(all.matching("head.*"), [](const Parameter& p) { return 0.5f * p.value(); });
  ASSERT_TRUE(halved);
  reference::run_updates(*halved, state);
  EXPECT_EQ(state["head.bias"], Numbers{1.5});
  EXPECT_EQ(state.size(), 2u);
  EXPECT_FALSE(map_parameters(all, [](const Parameter&) { return zeros({2}); }));
}

}  // namespace
}  // namespace imprint::nn

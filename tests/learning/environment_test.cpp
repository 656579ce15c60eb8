// The test worlds have the same trajectories as Gymnasium's classes.

#include "tools/trials/environments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace imprint::trials {
namespace {

struct Walk {
  std::vector<double> state;
  double reward = 0;
};

Walk walk(Environment& environment, std::vector<double> from, int steps,
          const std::function<double(int)>& action) {
  Draws draws(1, 0);
  environment.reset(draws);
  std::ranges::copy(from, environment.state().begin());
  Walk walked;
  for (int step = 0; step < steps; ++step) walked.reward += environment.step(action(step)).reward;
  walked.state.assign(environment.state().begin(), environment.state().end());
  return walked;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2e-9 * (1 + std::abs(expected[i]))) << i;
}

TEST(Environments, CartPoleIsGymnasiums) {
  const auto cart_pole = make_cart_pole();
  expect_near(walk(*cart_pole, {0.01, -0.02, 0.03, 0.04}, 10, [](int step) { return step % 2; }).state,
              {-0.0140178186, -0.0268407016, 0.0784775845, 0.191445587});
  Draws draws(1, 0);
  cart_pole->reset(draws);
  std::ranges::fill(cart_pole->state(), 0.0);
  for (int step = 1; step <= 9; ++step) EXPECT_EQ(cart_pole->step(1).terminated, step == 9) << step;
  EXPECT_NEAR(cart_pole->state()[2], -0.21518605, 1e-8);
}

TEST(Environments, PendulumIsGymnasiums) {
  const Walk walked = walk(*make_pendulum(), {1.5707963267948966, 0.5}, 10,
                           [](int step) { return step % 2 == 0 ? 1.5 : -0.5; });
  expect_near(walked.state, {3.74792892, 5.74555577});
  EXPECT_NEAR(walked.reward, -72.4329529, 5e-7);
}

TEST(Environments, AcrobotIsGymnasiums) {
  expect_near(walk(*make_acrobot(), {0.05, -0.05, 0.02, 0.01}, 10, [](int step) { return step % 3; }).state,
              {-0.00418111153, -0.0125180076, 0.230406807, -0.38357989});
}

TEST(Environments, MountainCarIsGymnasiums) {
  expect_near(walk(*make_mountain_car(), {-0.5, 0}, 10, [](int step) { return step < 5 ? 2 : 0; }).state,
              {-0.487172553, -0.00245058198});
}

// Gymnasium stores this one's state in float32.
TEST(Environments, MountainCarContinuousIsGymnasiums) {
  const Walk walked =
      walk(*make_mountain_car_continuous(), {-0.5, 0}, 10, [](int step) { return step < 5 ? 0.7 : -0.4; });
  EXPECT_NEAR(walked.state[0], -0.479442984, 1e-6);
  EXPECT_NEAR(walked.state[1], -0.000311541924, 1e-7);
  EXPECT_NEAR(walked.reward, -0.1 * (5 * 0.49 + 5 * 0.16), 1e-12);
}

TEST(Environments, ATimeLimitTruncatesAndDoesNotTerminate) {
  const auto pendulum = make_pendulum();
  Draws draws(3, 0);
  pendulum->reset(draws);
  for (int step = 1; step <= 200; ++step) {
    const Outcome outcome = pendulum->step(0);
    EXPECT_FALSE(outcome.terminated);
    EXPECT_EQ(outcome.truncated, step == 200);
  }
}

}  // namespace
}  // namespace imprint::trials

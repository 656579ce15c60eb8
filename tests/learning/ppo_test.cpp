// PPO learns: a few seeds of published settings, short enough for every build. ppo_table runs the whole
// table.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gpu/gpu_device.h"
#include "tools/trials/ppo_trial.h"

namespace imprint::trials {
namespace {

TEST(PpoLearns, CartPoleAsTheZooSetsIt) {
  ASSERT_NE(test::gpu(), nullptr);
  Setting setting = zoo_cart_pole();
  setting.enough = 475;
  const auto trial = make_trial(test::gpu()->session(), setting, 1);
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  const auto learned = (*trial)->learn();
  ASSERT_TRUE(learned.ok()) << learned.error().message;
  const Curve& curve = *learned;
  for (const Check& check : curve.checks)
    std::printf("%6lld steps: greedy %.1f, training %.1f\n", static_cast<long long>(check.steps),
                check.greedy, check.training);
  std::printf("%.1f s; dispatches: %u per step, %u per minibatch, %u per update\n", curve.seconds,
              curve.step_dispatches, curve.minibatch_dispatches, curve.update_dispatches);
  EXPECT_GT(curve.reached(475), 0);
  EXPECT_LE(curve.reached(475), 50'000);
  test::expect_validation_silent();
}

TEST(PpoLearns, CartPoleOnTheDevice) {
  ASSERT_NE(test::gpu(), nullptr);
  Setting setting = zoo_cart_pole();
  setting.enough = 475;
  const auto trial = make_resident_trial(test::gpu()->session(), setting, 1);
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  const auto learned = (*trial)->learn();
  ASSERT_TRUE(learned.ok()) << learned.error().message;
  const Curve& curve = *learned;
  std::printf("greedy %.1f at %lld steps, %.1f s\n", curve.checks.back().greedy,
              static_cast<long long>(curve.checks.back().steps), curve.seconds);
  EXPECT_GT(curve.reached(475), 0);
  EXPECT_LE(curve.reached(475), 50'000);
  test::expect_validation_silent();
}

}  // namespace
}  // namespace imprint::trials

// PPO learns: a few seeds of the settings that everybody knows, short enough for every build. The whole table is ppo_table's.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/gpu/gpu_device.h"
#include "tests/learning/ppo_trial.h"

namespace imprint::learning {
namespace {

TEST(PpoLearns, CartPoleAsTheZooSetsIt) {
  ASSERT_NE(test::gpu(), nullptr);
  Setting setting = zoo_cart_pole();
  setting.total_steps = 100'000;
  for (const std::uint64_t seed : {1u, 2u}) {
    const Curve curve = run_trial(test::gpu()->session(), setting, seed);
    for (const Check& check : curve.checks) std::printf("%lld steps: greedy %.1f training %.1f\n", static_cast<long long>(check.steps), check.greedy, check.training);
    std::printf("seed %llu: %.1f s, %u dispatches a step, %u an update (%u a minibatch)\n", static_cast<unsigned long long>(seed), curve.seconds, curve.step_dispatches, curve.update_dispatches, curve.minibatch_dispatches);
    EXPECT_LE(curve.reached(475), 50'000);
    EXPECT_GE(curve.reached(475), 0);
    EXPECT_GE(curve.checks.back().greedy, 490);
  }
  test::expect_validation_silent();
}

}  // namespace
}  // namespace imprint::learning

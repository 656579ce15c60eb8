// Crowds through the table, on device cpu: what agents do is learned from, and what is not is counted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/standalone_game.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

constexpr std::uint32_t kDirections = 8;
constexpr double kTurn = 6.283185307179586;

// Bodies that share one brain and ask in every frame. Each sees a direction; the reward is the cosine of the
// angle between that direction and the way that it takes.
class CrowdTest : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override {
    StandaloneDesc device;
    device.device = "cpu";
    open(device);
  }

  using StandaloneGame::add;
  template <class Options>
  void add(const Options& options, std::uint32_t bodies) {
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {kDirections};
    desc.hidden_sizes = {16};
    desc.agents_per_brain = bodies;
    desc.learner = options;
    add(desc);
  }

  double direction(std::size_t body) const {
    return kTurn * static_cast<double>((frame * 5 + body * 3) % kDirections) / kDirections;
  }

  // Whether an action began.
  bool turn(std::size_t body) {
    const Made<Action> action = agents[body].act();
    if (action.outcome.ready()) {
      const double way = kTurn * action.value.branches[0] / kDirections;
      EXPECT_TRUE(agents[body].reward(static_cast<float>(reward_sign * std::cos(way - direction(body)))));
    }
    const float seen[] = {static_cast<float>(std::cos(direction(body))),
                          static_cast<float>(std::sin(direction(body)))};
    EXPECT_TRUE(agents[body].observe(seen));
    return action.outcome.ready();
  }

  // Episodes of 20 frames.
  void live_episodes(int frames) {
    for (int i = 0; i < frames; ++i)
      pass([&] {
        for (std::size_t body = 0; body < agents.size(); ++body) {
          turn(body);
          if ((frame + body) % 20 == 0) ASSERT_WORKS(agents[body].end_episode(EpisodeEnd::terminated));
        }
      });
  }

  double reward_sign = 1;

  // Returns how many actions began.
  std::uint64_t live(int frames) {
    std::uint64_t acted = 0;
    for (int i = 0; i < frames; ++i)
      pass([&] {
        for (std::size_t body = 0; body < agents.size(); ++body) acted += turn(body);
      });
    return acted;
  }

  // With the learner's defaults, all but a tenth of what the crowd did is learned from; a rollout may still
  // be under way.
  template <class Options>
  void expect_used(std::uint32_t bodies, int frames, std::uint64_t under_way) {
    ASSERT_NO_FATAL_FAILURE(add(Options(), bodies));
    const std::uint64_t acted = live(frames);
    const imp_brain_stats stats = brain.stats().value;
    EXPECT_GE(10 * (stats.used_samples + under_way), 9 * acted) << stats.used_samples << " of " << acted;
    EXPECT_LE(10 * stats.dropped_samples, acted);
    EXPECT_EQ(stats.dropped_samples, stats.dropped_intake + stats.dropped_stale + stats.dropped_unfollowed);
    EXPECT_EQ(stats.uncredited, 0u);
    EXPECT_TRUE(log.empty()) << log.front();
  }
};

class CrowdSize : public CrowdTest, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  std::uint64_t a_few_frames() const { return 12 * GetParam(); }
};

TEST_P(CrowdSize, FeedbackUsesItsRewards) { expect_used<FeedbackOptions>(GetParam(), 300, a_few_frames()); }
TEST_P(CrowdSize, DqnUsesItsSteps) { expect_used<DqnOptions>(GetParam(), 300, a_few_frames()); }
TEST_P(CrowdSize, CoachUsesItsSteps) { expect_used<CoachOptions>(GetParam(), 300, a_few_frames()); }
TEST_P(CrowdSize, PpoUsesItsSteps) {
  const std::uint32_t rollout = std::max(512u, 32 * GetParam());
  const int frames = static_cast<int>(3 * rollout / GetParam() + 12);
  expect_used<PpoOptions>(GetParam(), frames, a_few_frames());
  EXPECT_EQ(brain.stats().value.used_samples, 3 * rollout);
}
INSTANTIATE_TEST_SUITE_P(Bodies, CrowdSize, ::testing::Values(1u, 8u, 64u),
                         [](const auto& bodies) { return std::to_string(bodies.param); });

TEST_P(CrowdSize, BanditUsesItsChoices) { expect_used<BanditOptions>(GetParam(), 300, a_few_frames()); }

// Each body may take some of the directions, others in each decision; what pays is the way that it may not
// take. 205,000 draws of each learner that chooses, more than a million in all.
class MaskedCrowd : public CrowdTest {
 protected:
  static constexpr std::uint32_t kBodies = 2048;
  std::vector<std::uint32_t> allowed = std::vector<std::uint32_t>(kBodies);  // bits
  std::vector<std::uint8_t> asked = std::vector<std::uint8_t>(kBodies);
  std::uint64_t draws = 0, forbidden = 0;
  std::array<std::uint64_t, kDirections> taken{};

  void choose(std::size_t body) {
    if (asked[body]) {
      const Made<Action> action = agents[body].act();
      if (!action.outcome.ready()) return;
      const std::uint32_t way = action.value.branches[0];
      ++draws;
      ++taken[way];
      forbidden += (allowed[body] >> way & 1) == 0 ? 1 : 0;
      EXPECT_TRUE(agents[body].reward(static_cast<float>(std::cos(kTurn * way / kDirections))));
    }
    asked[body] = 1;
    const auto mixed =
        static_cast<std::uint32_t>((frame * 0x9E3779B97F4A7C15u + body) * 0xD1B54A32D192ED03u >> 40);
    allowed[body] = mixed % 255 + 1;
    std::array<std::uint8_t, kDirections> mask{};
    for (std::uint32_t way = 0; way < kDirections; ++way)
      mask[way] = static_cast<std::uint8_t>(allowed[body] >> way & 1);
    EXPECT_TRUE(agents[body].set_mask(mask));
    const float seen[] = {static_cast<float>(mixed % 7) / 7, 1};
    EXPECT_TRUE(agents[body].observe(seen));
  }

  template <class Options>
  void expect_masked() {
    ASSERT_NO_FATAL_FAILURE(add(Options(), kBodies));
    while (draws < 205'000) {
      pass([&] {
        for (std::size_t body = 0; body < agents.size(); ++body) choose(body);
      });
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_EQ(forbidden, 0u) << "of " << draws;
    EXPECT_THAT(taken, ::testing::Each(::testing::Gt(draws / 1000)));
    EXPECT_GT(brain.stats().value.minibatches, 0u);
  }
};

TEST_F(MaskedCrowd, FeedbackNeverTakesWhatIsForbidden) { expect_masked<FeedbackOptions>(); }
TEST_F(MaskedCrowd, DqnNeverTakesWhatIsForbidden) { expect_masked<DqnOptions>(); }
TEST_F(MaskedCrowd, CoachNeverTakesWhatIsForbidden) { expect_masked<CoachOptions>(); }
TEST_F(MaskedCrowd, PpoNeverTakesWhatIsForbidden) { expect_masked<PpoOptions>(); }
TEST_F(MaskedCrowd, BanditNeverTakesWhatIsForbidden) { expect_masked<BanditOptions>(); }

// More samples than the steps of a long period can hold: counted, and said once with the number to set.
TEST_F(CrowdTest, WhatTheIntakeCannotHoldIsCountedAndSaidOnce) {
  FeedbackOptions options;
  options.replay_capacity = 32;
  ASSERT_NO_FATAL_FAILURE(add(options, 64));
  live(120);
  const imp_brain_stats stats = brain.stats().value;
  EXPECT_GT(stats.dropped_intake, 1000u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("dropped_intake: found "));
  EXPECT_THAT(log[0], HasSubstr("Set decision_period_frames to 2 or more."));
}

// A step with rewards only waits for no praise. From the first word of a person on, steps wait for the next.
TEST_F(CrowdTest, RewardsAreCreditedAtOnceAndWordsReachBack) {
  DqnOptions options;
  options.learn_period_frames = 1;
  ASSERT_NO_FATAL_FAILURE(add(options, 1));
  const std::uint64_t acted = live(60);
  EXPECT_GE(brain.stats().value.used_samples + 4, acted) << "one second, shorter than a person's reach";
  pass([&] { ASSERT_WORKS(agents[0].feedback(1, now())); });
  const std::uint64_t before = brain.stats().value.used_samples;
  live(60);
  EXPECT_LE(brain.stats().value.used_samples, before + 4) << "they wait for words";
  live(60);
  EXPECT_GE(brain.stats().value.used_samples, before + 30);
}

// A rate at which every step overshoots: values stay beyond the largest reward.
TEST_F(CrowdTest, ValuesThatDivergeAreSaidOnce) {
  DqnOptions options;
  options.learn_period_frames = 1;
  options.learning_rate = 3;
  options.discount = 0;
  options.max_gradient_norm = 0;
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {kDirections};
  desc.hidden_sizes = {64};
  desc.activation = Activation::tanh;  // saturated: no unit dies, and the outputs stay large
  desc.learner = options;
  ASSERT_NO_FATAL_FAILURE(add(desc));
  live(600);
  EXPECT_TRUE(brain.stats().value.alarms & IMP_ALARM_DIVERGING_VALUES);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("values: found "));
  EXPECT_THAT(log[0], HasSubstr("Set learning_rate to 1 or less"));
}

BrainDesc four_bodies(bool falls_back) {
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {kDirections};
  desc.hidden_sizes = {16};
  desc.agents_per_brain = 4;
  desc.learner = DqnOptions();
  desc.fall_back = falls_back;
  return desc;
}

TEST_F(CrowdTest, FallingReturnsAreSaidOnce) {
  ASSERT_NO_FATAL_FAILURE(add(four_bodies(false)));
  live_episodes(1500);
  EXPECT_EQ(brain.stats().value.alarms, 0u);
  ASSERT_WORKS(brain.forget_returns());  // the game says that it changes
  reward_sign = -1;
  live_episodes(600);
  EXPECT_EQ(brain.stats().value.alarms, 0u);
  reward_sign = 1;
  live_episodes(300);
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_FALLING_RETURNS});
  EXPECT_EQ(brain.stats().value.fall_backs, 0u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("returns: found -"));
  EXPECT_THAT(log[0], HasSubstr("imp_brain_desc::fall_back"));
}

// The game is turned round for a while. The brain goes back, and goes on where it was.
TEST_F(CrowdTest, TheBestWeightsComeBackWhereReturnsFall) {
  ASSERT_NO_FATAL_FAILURE(add(four_bodies(true)));
  live_episodes(1500);
  EXPECT_EQ(brain.stats().value.fall_backs, 0u);
  reward_sign = -1;
  while (brain.stats().value.fall_backs == 0 && frame < 2000) live_episodes(1);
  EXPECT_EQ(brain.stats().value.fall_backs, 1u);
  reward_sign = 1;
  live_episodes(600);
  const imp_brain_stats stats = brain.stats().value;
  EXPECT_EQ(stats.fall_backs, 1u) << "it earns as before";
  EXPECT_EQ(stats.alarms, std::uint64_t{IMP_ALARM_FALLING_RETURNS});
}

TEST_F(CrowdTest, OnlyABrainThatLearnsFallsBack) {
  BrainDesc desc = four_bodies(true);
  desc.brain_count = 2;
  EXPECT_THAT(context.create_brain(desc).outcome.message(),
              HasSubstr("fall_back: found 1 and a kennel of 2"));
  desc.brain_count = 1;
  desc.learner = NoLearner();
  EXPECT_THAT(context.create_brain(desc).outcome.message(), HasSubstr("fall_back: found 1 and no learner"));
}

TEST_F(CrowdTest, AnUnusedRewardIsSaidOnce) {
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {kDirections};
  ASSERT_NO_FATAL_FAILURE(add(desc));
  live(20);
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_UNUSED_REWARD});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found learner none"));
}

TEST_F(CrowdTest, RewardsThatReachNoActionAreCounted) {
  ASSERT_NO_FATAL_FAILURE(add(DqnOptions(), 1));
  for (int i = 0; i < 80; ++i) pass([&] { ASSERT_WORKS(agents[0].reward(1)); });
  EXPECT_EQ(brain.stats().value.uncredited, 80u);
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_UNCREDITED});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("uncredited: found 64 rewards"));
  EXPECT_THAT(log[0], HasSubstr("between agent_act and agent_end_episode"));
}

// Steering by rewards: the number that is seen is the one to give. Beside it a branch, which is right when it
// says the number's sign.
class SteeringTest : public CrowdTest {
 protected:
  // One decision, in two frames.
  Action decide(float seen) {
    Action action;
    pass([&] { ASSERT_WORKS(agents[0].observe(std::vector<float>{seen})); });
    pass([&] {
      Made<Action> made = agents[0].act();
      ASSERT_TRUE(made) << made.outcome.message();
      action = made.value;
    });
    return action;
  }
};

TEST_F(SteeringTest, PpoDrawsContinuousActionsBesideBranches) {
  PpoOptions options;
  options.rollout_steps = 256;
  options.batch_size = 64;
  options.epochs = 8;
  options.learning_rate = 3e-3f;
  BrainDesc desc;
  desc.observation_count = 1;
  desc.branch_sizes = {2};
  desc.continuous_count = 1;
  desc.hidden_sizes = {16};
  desc.action_latency_frames = 1;
  desc.learner = options;
  ASSERT_NO_FATAL_FAILURE(add(desc));
  bool beyond = false;
  for (int i = 0; i < 6000; ++i) {
    const auto wanted = static_cast<float>(0.8 * std::sin(i * 1.7));
    const Action action = decide(wanted);
    ASSERT_LE(std::abs(action.continuous[0]), 1.0f);
    beyond |= std::abs(action.continuous[0]) == 1;
    const float apart = action.continuous[0] - wanted;
    const float right = action.branches[0] == (wanted > 0 ? 1u : 0u) ? 1.0f : 0.0f;
    pass([&] {
      ASSERT_WORKS(agents[0].reward(right - apart * apart));
      ASSERT_WORKS(agents[0].end_episode(EpisodeEnd::terminated));
    });
  }
  EXPECT_TRUE(beyond) << "what is drawn is clamped";
  ASSERT_WORKS(agents[0].set_mode(Mode::inference));
  for (const float seen : {-0.7f, -0.3f, 0.3f, 0.7f}) {
    const Action action = decide(seen);
    EXPECT_NEAR(action.continuous[0], seen, 0.2f);
    EXPECT_EQ(action.branches[0], seen > 0 ? 1u : 0u);
  }
}

}  // namespace

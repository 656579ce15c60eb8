// The loop of a person and a cat, on device cpu, with all defaults: no commands, no episodes. Each trial
// shows one of three bowls, and the cat goes to one. The words come late.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr std::uint32_t kBowls = 3;

class CatTest : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override {
    StandaloneDesc device;
    device.device = "cpu";
    open(device);
  }
  void create(std::uint32_t goals = 1) {
    BrainDesc desc = BrainDesc::of(FeedbackOptions(), kBowls, {kBowls});
    desc.goal_count = goals;
    add(desc);
  }

  // One decision per two seconds. told(right) 0.8 s after the cat goes. The share of the last half that was
  // right.
  double trials(int count, const std::function<void(bool right)>& told) {
    constexpr std::uint64_t kPeriod = 120, kLate = 48;
    int right = 0;
    for (int trial = 0; trial < count; ++trial) {
      random_ = random_ * 1664525u + 1013904223u;
      const std::uint32_t full = (random_ >> 16) % kBowls;
      std::array<float, kBowls> seen{};
      seen[full] = 1;
      bool chose = false, good = false;
      std::uint64_t since = 0;
      for (std::uint64_t i = 0; i < kPeriod; ++i)
        pass([&] {
          if (i == 0) ASSERT_WORKS(agents[0].observe(seen));
          const Made<Action> action = agents[0].act();
          if (!chose && action.outcome.ready() && action.value.is_new) {
            chose = true;
            since = i;
            good = action.value.branches[0] == full;
            right += good && trial >= count / 2 ? 1 : 0;
          }
          if (chose && i == since + kLate) told(good);
        });
    }
    return static_cast<double>(right) / (count - count / 2);
  }
  // A room that is heated, left alone or cooled in every second frame, 0.5 degrees at a time; it drifts.
  // Returns how many degrees it is off on average.
  double keep_warm(int frames, const std::function<float(double off, double before)>& reward) {
    double off = 5, sum = 0;
    int steps = 0;
    for (int i = 0; i < frames; ++i)
      pass([&] {
        const Made<Action> action = agents[0].act();
        if (action.outcome.ready() && action.value.is_new) {
          const double before = off;
          off += 0.5 * (static_cast<double>(action.value.branches[0]) - 1) + 0.1;
          if (std::abs(off) > 15) off = 5;
          ASSERT_WORKS(agents[0].reward(reward(std::abs(off), std::abs(before))));
          sum += std::abs(off);
          ++steps;
        }
        if (i % 2 == 0)
          ASSERT_WORKS(agents[0].observe(std::array<float, 2>{static_cast<float>(off / 15), 1}));
      });
    return sum / steps;
  }
  void say(float value) { ASSERT_WORKS(agents[0].feedback(value, now())); }

  std::uint32_t random_ = 1;
};

TEST_F(CatTest, LearnsFromPraiseAndScoldingWithoutCommands) {
  create();
  EXPECT_GE(trials(150, [&](bool right) { say(right ? 1 : -1); }), 0.85);
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(CatTest, LearnsFromPraiseAlone) {
  create();
  EXPECT_GE(trials(200,
                   [&](bool right) {
                     if (right) say(1);
                   }),
            0.85);
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(CatTest, LearnsFromRewardsOfOneAndZero) {
  create();
  EXPECT_GE(trials(200, [&](bool right) { ASSERT_WORKS(agents[0].reward(right ? 1 : 0)); }), 0.85);
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(CatTest, APersonWhoLeftUnteachesNothing) {
  create();
  trials(150, [&](bool right) {
    if (right) say(1);
  });
  EXPECT_GE(trials(200, [](bool) {}), 0.85);
}

TEST_F(CatTest, CommandsThatNeverChangeAreSaidOnce) {
  create(2);
  trials(150, [&](bool) { say(brain.stats().value.decisions % kBowls == 0 ? 1.0f : -1.0f); });
  trials(70, [](bool) {});
  EXPECT_TRUE(brain.stats().value.alarms & IMP_ALARM_ONE_CHOICE_LEFT);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("found one choice left in 64 decisions in a row"));
  EXPECT_THAT(log[0], HasSubstr("agent_set_goal"));
}

TEST_F(CatTest, RewardsOfOneValueAreSaidOnce) {
  create();
  trials(220, [&](bool) { ASSERT_WORKS(agents[0].reward(1)); });
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_ONE_VALUE});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("found the value 1 in all of 200"));
  EXPECT_THAT(log[0], HasSubstr("Scold what is wrong"));
}

// One that does all right from the start earns one value only.
TEST_F(CatTest, ALoadedBrainThatActsWellIsNotWarnedOf) {
  const std::string path = testing::TempDir() + "imprint-cat.brain";
  create();
  trials(150, [&](bool right) { ASSERT_WORKS(agents[0].reward(right ? 1 : -1)); });
  ASSERT_WORKS(brain.save(path.c_str()));
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_WORKS(brain.load(path.c_str()));
  ASSERT_TRUE(log.empty()) << log.front();
  create();
  ASSERT_WORKS(brain.load(path.c_str()));
  trials(220, [&](bool) { ASSERT_WORKS(agents[0].reward(1)); });
  EXPECT_EQ(brain.stats().value.alarms, 0u);
  EXPECT_TRUE(log.empty()) << log.front();
}

// How things stand says little about the last action.
TEST_F(CatTest, RewardsThatTellHowThingsStandAreSaidOnce) {
  add(BrainDesc::of(FeedbackOptions(), 2, {3}));
  keep_warm(1400, [](double off, double) { return static_cast<float>(-off / 15); });
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_FLAT_REWARDS});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found rewards that differ by about 0.0"));
  EXPECT_THAT(log[0], HasSubstr("expected more than exploration, 0.2"));
  EXPECT_THAT(log[0], HasSubstr("DqnOptions"));
}

TEST_F(CatTest, RewardsOfTheActionAloneAreNotWarnedOf) {
  add(BrainDesc::of(FeedbackOptions(), 2, {3}));
  EXPECT_LT(keep_warm(2000, [](double off, double before) { return off < before ? 1.0f : -1.0f; }), 3);
  EXPECT_TRUE(log.empty()) << log.front();
}

// A game that forgot agent_reward, one whose rewards are all 0, and one whose rewards may be rare.
TEST_F(CatTest, NoRewardIsSaidOnce) {
  const auto plays = [this](const BrainDesc& desc, bool calls) {
    add(desc);
    log.clear();
    for (int i = 0; i < 4000; ++i)
      pass([&] {
        const Action action = agents[0].act().value;
        if (action.is_new && calls) ASSERT_WORKS(agents[0].reward(0));
        if (action.wants_observation) ASSERT_WORKS(agents[0].observe(std::array{1.0f, 0.0f, 0.0f}));
      });
    EXPECT_GT(brain.stats().value.decisions, 1010u);
    return brain.stats().value.alarms;
  };
  EXPECT_EQ(plays(BrainDesc::of(FeedbackOptions(), kBowls, {kBowls}), true),
            std::uint64_t{IMP_ALARM_NO_REWARD});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found no reward in 5"));
  EXPECT_EQ(plays(BrainDesc::of(DqnOptions(), kBowls, {kBowls}), false), std::uint64_t{IMP_ALARM_NO_REWARD});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found no reward in 1"));
  EXPECT_EQ(plays(BrainDesc::of(DqnOptions(), kBowls, {kBowls}), true), 0u);
}

// DQN and SAC predict sums of rewards as they are; PPO normalises.
TEST_F(CatTest, RewardsFarFromOneInSizeAreSaidOnce) {
  const auto plays = [this](const BrainDesc& desc, float size) {
    add(desc);
    log.clear();
    for (int i = 0; i < 2200; ++i)
      pass([&] {
        const Action action = agents[0].act().value;
        if (action.is_new) ASSERT_WORKS(agents[0].reward(i % 4 < 2 ? size : -size));
        if (action.wants_observation) ASSERT_WORKS(agents[0].observe(std::array{1.0f, 0.0f, 0.0f}));
      });
    EXPECT_GT(brain.stats().value.decisions, 1010u);
    return brain.stats().value.alarms;
  };
  const BrainDesc bowls = BrainDesc::of(DqnOptions(), kBowls, {kBowls});
  EXPECT_EQ(plays(bowls, 200), std::uint64_t{IMP_ALARM_REWARD_SIZE});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found rewards of about 200 in size, expected about 1"));
  EXPECT_THAT(log[0], HasSubstr("Multiply each by 0.01."));
  EXPECT_EQ(plays(bowls, 1e-3f), std::uint64_t{IMP_ALARM_REWARD_SIZE});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("Multiply each by 1000."));
  EXPECT_EQ(plays(bowls, 10), 0u);
  EXPECT_EQ(plays(BrainDesc::of(PpoOptions(), kBowls, {kBowls}), 200), 0u);
}

// Its frame's work may be submitted already. It takes the slot of one that died in that frame, and gets no
// answer of that one.
TEST_F(CatTest, AnAgentMayBeBornInAFrame) {
  add(BrainDesc::of(DqnOptions(), kBowls, {kBowls}));
  const std::array seen{1.0f, 0.0f, 0.0f};
  pass([&] { ASSERT_WORKS(agents[0].observe(seen)); });
  pass([&] {
    agents.clear();
    EXPECT_EQ(brain.create_agents(2).outcome.code(), Code::unsupported);
    agents = *brain.create_agents(1);
    EXPECT_EQ(agents[0].act().outcome.code(), Code::not_found);
    ASSERT_WORKS(agents[0].observe(seen));
  });
  pass([&] { EXPECT_EQ(agents[0].act().outcome.code(), Code::not_ready); });
  pass([&] { EXPECT_EQ(agents[0].act().value.requested_frame, frame - 2); });
  ++frame;
  ASSERT_WORKS(context.frame_begin(frame, now()));
  ASSERT_WORKS(context.submit());
  agents.clear();
  agents = *brain.create_agents(1);
  ASSERT_WORKS(context.frame_end());
  pass([&] { ASSERT_WORKS(agents[0].observe(seen)); });
  pass([&] { EXPECT_EQ(agents[0].act().outcome.code(), Code::not_ready); });
  pass([&] { EXPECT_TRUE(agents[0].act().value.is_new); });
}

TEST_F(CatTest, ARewardThatIsCutIsSaidOnce) {
  create();
  trials(12, [&](bool right) { ASSERT_WORKS(agents[0].reward(right ? 5 : -1)); });
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_CUT_REWARD});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_reward: found 5, expected -1 to 1, because the feedback learner"));
  log.clear();
  add(BrainDesc::of(DqnOptions(), kBowls, {kBowls}));
  trials(12, [&](bool right) { ASSERT_WORKS(agents[0].reward(right ? 5 : -1)); });
  EXPECT_TRUE(log.empty()) << log.front();
}

// A word spans 1.2 s: of a cat that decides 30 times per second no one can say which action was meant.
TEST_F(CatTest, WordsForManyActionsAreSaidOnce) {
  create();
  for (int i = 0; i < 600; ++i)
    pass([&] {
      const Made<Action> action = agents[0].act();
      if (action.outcome.ready() && action.value.is_new && i > 120) say(i % 3 ? 1.0f : -1.0f);
      if (i % 2 == 0) ASSERT_WORKS(agents[0].observe(std::array<float, kBowls>{1, 0, 0}));
    });
  EXPECT_TRUE(brain.stats().value.alarms & IMP_ALARM_SPREAD_WORDS);
  ASSERT_FALSE(log.empty());
  EXPECT_THAT(log[0], HasSubstr("actions that a word is for, expected one or two"));
  for (const std::string& line : log) EXPECT_THAT(line, HasSubstr("agent_observe once per 1 to 2 s"));
}

TEST_F(CatTest, WordsOfAnotherClockReachNoAction) {
  create();
  trials(70, [&](bool) { ASSERT_WORKS(agents[0].feedback(1, 0)); });
  EXPECT_EQ(brain.stats().value.samples, 0u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("uncredited: found 64"));
  EXPECT_THAT(log[0], HasSubstr("time_s of the frames' clock"));
}

TEST_F(CatTest, AnUnscaledObservationIsSaidOnce) {
  create();
  pass([&] { ASSERT_WORKS(agents[0].observe(std::array<float, kBowls>{0, 1, 86400})); });
  pass([&] { ASSERT_WORKS(agents[0].observe(std::array<float, kBowls>{40, 1, 86400})); });
  EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_UNSCALED});
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("observation[2]: found 86400"));
  EXPECT_THAT(log[0], HasSubstr("observation_scale[2]"));
}

}  // namespace

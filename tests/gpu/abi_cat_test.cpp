// The loop of a person and a cat, on device cpu, with all defaults: no commands, no episodes. Each trial
// shows one of three bowls, and the cat goes to one. The words come late.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
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

// Returns of agents: when they have fallen, and which weights are the best so far.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "compute/base/philox.h"
#include "plugin/agent/learn/samples/returns.h"

namespace imprint::agent {
namespace {

BrainSpec two_brains() {
  BrainSpec spec;
  spec.brain_count = 2;
  spec.agents_per_brain = 2;
  return spec;
}

class ReturnsTest : public ::testing::Test {
 protected:
  // Between -1 and 1.
  static double noise(std::uint32_t number) { return 2 * philox_uniform(number, 7, 1, 2, 3) - 1; }

  // Episodes of three steps by both agents of brain 0 in turn.
  void play(int episodes, const std::function<double(int)>& earned) {
    for (int i = 0; i < episodes; ++i, ++played) {
      const std::uint32_t agent = static_cast<std::uint32_t>(played) % 2;
      for (int step = 0; step < 3; ++step) {
        returns.acted(agent);
        returns.rewarded(agent, static_cast<float>(earned(i) / 3));
      }
      returns.ended(agent);
      bests += returns.take_best(0);
      falls += returns.fell(0);
    }
  }
  // From 20 to 480.
  void learn() {
    play(100, [](int i) {
      return 20 + 460 * std::min(1.0, i / 60.0) + 10 * noise(static_cast<std::uint32_t>(i));
    });
  }

  BrainSpec spec = two_brains();
  Returns returns{spec};
  int played = 0, bests = 0, falls = 0;
};

TEST_F(ReturnsTest, AFallOfHalfOfWhatWasLearnedIsSeen) {
  learn();
  EXPECT_EQ(falls, 0);
  play(40, [](int i) { return 120 + 30 * noise(static_cast<std::uint32_t>(i)); });
  EXPECT_TRUE(returns.fell(0));
  EXPECT_NEAR(returns.fall(0).now, 120, 20);
  EXPECT_NEAR(returns.fall(0).best, 480, 10);
  EXPECT_FALSE(returns.fell(1)) << "which earned nothing";
}

TEST_F(ReturnsTest, ASmallerLossIsNone) {
  learn();
  play(200, [](int i) { return 300 + 30 * noise(static_cast<std::uint32_t>(i)); });
  EXPECT_EQ(falls, 0);
}

TEST_F(ReturnsTest, NegativeReturnsFallToo) {
  play(100,
       [](int i) { return -500 + 420 * std::min(1.0, i / 60.0) + noise(static_cast<std::uint32_t>(i)); });
  EXPECT_EQ(falls, 0);
  play(40, [](int) { return -450.0; });
  EXPECT_TRUE(returns.fell(0));
}

TEST_F(ReturnsTest, ChanceNeverLooksLikeAFall) {
  play(20000, [](int i) { return 100 * noise(static_cast<std::uint32_t>(i)); });
  EXPECT_EQ(falls, 0);
  EXPECT_LE(bests, 2);
}

// The luckiest and the unluckiest twenty of many have a small variance of their own.
TEST_F(ReturnsTest, ManyCoinsAfterAGainNeverLookLikeAFall) {
  play(40, [](int) { return -0.5; });
  play(100'000, [](int i) { return noise(static_cast<std::uint32_t>(i)) > 0 ? 1.0 : 0.0; });
  EXPECT_EQ(falls, 0);
}

TEST_F(ReturnsTest, AGameWithoutEpisodesIsJudgedBySpans) {
  const auto live = [&](std::uint32_t steps, float reward) {
    for (std::uint32_t i = 0; i < steps; ++i) {
      returns.acted(0);
      returns.rewarded(0, reward);
    }
  };
  live(20 * Returns::kSpan, 0.1f);
  live(40 * Returns::kSpan, 1);
  EXPECT_FALSE(returns.fell(0));
  live(21 * Returns::kSpan, 0.2f);
  EXPECT_TRUE(returns.fell(0));
  EXPECT_NEAR(returns.fall(0).best, Returns::kSpan, 1e-3);
  EXPECT_FALSE(returns.has_episodes());
  returns.ended(0);
  EXPECT_TRUE(returns.has_episodes());
  EXPECT_FALSE(returns.fell(0)) << "spans are no episodes";
}

TEST_F(ReturnsTest, BestWeightsAreKeptAFewTimesAsTheyImprove) {
  learn();
  EXPECT_GE(bests, 3);
  EXPECT_LE(bests, 12);
  const int before = bests;
  play(500, [](int i) { return 480 + 10 * noise(static_cast<std::uint32_t>(i)); });
  EXPECT_LE(bests, before + 1);
}

TEST_F(ReturnsTest, WhereTheBestWeightsEarnLittleTheGameHasChanged) {
  learn();
  play(30, [](int) { return 100.0; });
  ASSERT_TRUE(returns.fell(0));
  returns.went_back(0);
  EXPECT_FALSE(returns.fell(0));
  falls = bests = 0;
  play(200, [](int i) { return 100 + noise(static_cast<std::uint32_t>(i)); });
  EXPECT_EQ(falls, 0) << "100 is all that the new game gives";
  play(60, [](int) { return 200.0; });
  EXPECT_GE(bests, 1) << "and now 200";
}

TEST_F(ReturnsTest, WhereTheBestWeightsEarnAsBeforeTheyStayTheMeasure) {
  learn();
  play(30, [](int) { return 100.0; });
  returns.went_back(0);
  falls = 0;
  play(60, [](int i) { return 470 + 10 * noise(static_cast<std::uint32_t>(i)); });
  EXPECT_EQ(falls, 0);
  play(40, [](int) { return 100.0; });
  EXPECT_TRUE(returns.fell(0)) << "again";
}

}  // namespace
}  // namespace imprint::agent

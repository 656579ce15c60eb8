// Self-play through the C interface: opponents, matches, ratings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <imprint/imprint.hpp>

#include "tests/gpu/standalone_game.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

class SelfPlay : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override { open_test_device(); }
  static BrainDesc describe() {
    PpoOptions options;
    options.rollout_steps = options.batch_size = 16;
    options.learn_period_frames = 1;
    BrainDesc desc = BrainDesc::of(options, 2, {3}, 2);
    desc.hidden_sizes = {8};
    desc.action_latency_frames = 1;
    desc.self_play.emplace().pool_size = 2;
    desc.self_play->pool_period = 0;
    return desc;
  }
  void play(int frames) {
    for (int i = 0; i < frames; ++i) {
      pass([&] {
        for (Agent& agent : agents) {
          const Made<Action> action = agent.act();
          if (action && action->is_new) ASSERT_WORKS(agent.reward(action->branches[0] == 1 ? 1.0f : 0.0f));
          ASSERT_WORKS(agent.observe(std::array<float, 2>{1, static_cast<float>(i % 2)}));
        }
      });
      ASSERT_WORKS(context.drain(60'000));  // each answer is there in time, on a slow device too
    }
  }
};

TEST_F(SelfPlay, OldWeightsPlayAndRatingsTellWhoWon) {
  add(describe());
  EXPECT_EQ(brain.stats()->rating, 1200);
  EXPECT_EQ(agents[1].set_opponent(0).outcome.code(), Code::not_found);
  EXPECT_EQ(*agents[1].set_opponent(IMP_OPPONENT_DRAWN), IMP_OPPONENT_NEWEST) << "the pool is empty";
  ASSERT_WORKS(brain.keep_opponent());
  play(60);
  ASSERT_EQ(brain.opponent(0)->rating, 1200);
  EXPECT_GT(brain.opponent(0)->decisions, 0u);
  EXPECT_EQ(brain.opponent(1).outcome.code(), Code::not_found);
  ASSERT_WORKS(agents[1].set_opponent(0).outcome);
  const std::uint64_t used = brain.stats()->used_samples;
  play(60);
  EXPECT_NEAR(static_cast<double>(brain.stats()->used_samples - used), 60, 20) << "one of two agents learns";
  ASSERT_WORKS(agents[0].report_match(agents[1], 1));
  EXPECT_EQ(brain.opponent(IMP_OPPONENT_NONE)->rating, 1208);
  EXPECT_EQ(brain.opponent(0)->rating, 1192);
  EXPECT_EQ(brain.opponent(0)->matches, 1u);
  play(3);
  EXPECT_EQ(brain.stats()->rating, 1208);
}

TEST_F(SelfPlay, MistakesAreNamed) {
  BrainDesc without = describe();
  without.self_play.reset();
  add(without);
  ASSERT_WORKS(agents[0].set_opponent(IMP_OPPONENT_NONE).outcome);
  EXPECT_THAT(agents[0].set_opponent(0).outcome.message(),
              HasSubstr("Give brain_create imp_self_play_options"));
  EXPECT_EQ(brain.keep_opponent().code(), Code::unsupported);
  EXPECT_EQ(agents[0].report_match(agents[1], 1).code(), Code::unsupported);
  add(describe());
  EXPECT_THAT(agents[0].report_match(agents[1], 1.5f).message(),
              HasSubstr("score: found 1.5, expected 0 to 1"));
  EXPECT_EQ(agents[0].report_match(Agent(), 1).code(), Code::invalid_argument);
  EXPECT_EQ(brain.keep_opponent(1).code(), Code::invalid_argument);
}

}  // namespace

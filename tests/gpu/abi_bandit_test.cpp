// The bandit learner through the C interface: a kennel learns which choice pays in tens of decisions, tells
// its doubt by exploring, and acts alike after it was loaded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/learning_game.h"

namespace {

using namespace imprint::game;
using imprint::game::test::one_hot;

constexpr std::uint32_t kMoods = 4, kHints = 5;

class HintTest : public imprint::game::test::LearningGame {
 protected:
  static BrainDesc hinting(bool thompson, std::uint32_t goals = 1) {
    BanditOptions options;
    options.thompson = thompson;
    options.learn_period_frames = 1;
    BrainDesc desc = BrainDesc::of(options, kMoods, {kHints});
    desc.hidden_sizes = {16};
    desc.goal_count = goals;
    desc.action_latency_frames = 1;
    desc.brain_count = 2;
    return desc;
  }

  // The one hint that pays, other ones for each brain and goal.
  static std::uint32_t best(std::size_t of, std::uint32_t seen, std::uint32_t goal) {
    return (seen + 2 * static_cast<std::uint32_t>(of) + goal) % kHints;
  }

  std::uint32_t choose(Agent& agent, std::uint32_t seen) {
    pass([&] { EXPECT_TRUE(agent.observe(one_hot<kMoods>(seen))); });
    for (;;) {
      Made<Action> action;
      pass([&] { action = agent.act(); });
      if (action.outcome.ready()) return action.value.branches[0];
    }
  }

  void decide(int times, std::uint32_t goals = 1) {
    for (int i = 0; i < times; ++i) {
      const auto seen = static_cast<std::uint32_t>(i) % kMoods,
                 goal = static_cast<std::uint32_t>(i) / 4 % goals;
      for (std::size_t p = 0; p < agents.size(); ++p) {
        if (goals > 1) ASSERT_WORKS(agents[p].set_goal(goal));
        const std::uint32_t chosen = choose(agents[p], seen);
        tried[p].insert(seen * kHints + chosen);
        pass([&] {
          ASSERT_WORKS(agents[p].reward(chosen == best(p, seen, goal) ? 1.0f : 0.0f));
          ASSERT_WORKS(agents[p].end_episode(EpisodeEnd::terminated));
        });
      }
    }
  }

  // By the weights alone.
  std::vector<std::uint32_t> greedy(std::uint32_t goals = 1) {
    std::vector<std::uint32_t> chosen;
    for (Agent& agent : agents) {
      EXPECT_TRUE(agent.set_mode(Mode::inference));
      for (std::uint32_t goal = 0; goal < goals; ++goal)
        for (std::uint32_t seen = 0; seen < kMoods; ++seen) {
          if (goals > 1) EXPECT_TRUE(agent.set_goal(goal));
          chosen.push_back(choose(agent, seen));
        }
      EXPECT_TRUE(agent.set_mode(Mode::learning));
      pass([&] { EXPECT_TRUE(agent.end_episode(EpisodeEnd::terminated)); });
    }
    return chosen;
  }
  void expect_best(std::uint32_t goals = 1) {
    const std::vector<std::uint32_t> chosen = greedy(goals);
    std::size_t at = 0;
    for (std::size_t p = 0; p < agents.size(); ++p)
      for (std::uint32_t goal = 0; goal < goals; ++goal)
        for (std::uint32_t seen = 0; seen < kMoods; ++seen)
          EXPECT_EQ(chosen[at++], best(p, seen, goal)) << "brain " << p << ", mood " << seen;
  }

  std::set<std::uint32_t> tried[2];
};

class HintTestOf : public HintTest, public testing::WithParamInterface<bool> {};

// 20 pairs of mood and hint, of which 4 pay.
TEST_P(HintTestOf, FindsWhatPaysIn120DecisionsAndTriesItAllBefore) {
  add(hinting(GetParam()));
  ASSERT_NO_FATAL_FAILURE(decide(120));
  expect_best();
  for (const std::set<std::uint32_t>& own : tried) EXPECT_GE(own.size(), kMoods * 3);
}
INSTANTIATE_TEST_SUITE_P(By, HintTestOf, testing::Bool(),
                         [](const auto& thompson) { return thompson.param ? "thompson" : "LinUCB"; });

TEST_F(HintTest, EachGoalHasArmsOfItsOwn) {
  add(hinting(true, 2));
  ASSERT_NO_FATAL_FAILURE(decide(240, 2));
  expect_best(2);
}

TEST_F(HintTest, ASavedBrainGoesOnWithItsDoubt) {
  const std::string path = testing::TempDir() + "imprint-hints.brain";
  add(hinting(true));
  ASSERT_NO_FATAL_FAILURE(decide(40));
  ASSERT_WORKS(context.drain(60'000));
  const BrainHash before = brain.hash().value;
  ASSERT_WORKS(brain.save(path.c_str()));
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_EQ(brain.save_status().result(), IMP_OK);
  ASSERT_NO_FATAL_FAILURE(decide(20));
  ASSERT_WORKS(context.drain(60'000));
  EXPECT_FALSE(brain.hash().value == before);
  ASSERT_WORKS(brain.load(path.c_str()));
  EXPECT_TRUE(brain.hash().value == before);
  // The weights alone serve a brain that does not learn.
  const std::vector<std::uint32_t> chosen = greedy();
  agents.clear();
  BrainDesc other = hinting(true);
  other.learner = NoLearner();
  add(other);
  ASSERT_WORKS(brain.load_weights(path.c_str()));
  EXPECT_EQ(greedy(), chosen);
  (void)std::remove(path.c_str());
}

}  // namespace

// The learners from steps, through the table: each learns something that has a known answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/gpu/abi_learners.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;
using namespace imprint::game::test;

// ---- a contextual bandit, of a kennel: what is right depends on what is seen, and is another thing for each
// brain

class BanditTest : public LearnersTest {
 protected:
  std::uint32_t right(std::uint32_t brain_index, std::uint32_t thing) const {
    return (thing + brain_index) % kOptions;
  }

  void train(int rounds, const std::function<void(Agent& agent, bool good)>& judge) {
    struct Body {
      std::uint32_t thing = 0, seen = 0;
      bool asked = false;
    };
    std::vector<Body> bodies(agents.size());
    play_until(rounds, [&] {
      int decisions = 0;
      for (std::uint32_t i = 0; i < agents.size(); ++i) {
        Body& body = bodies[i];
        if (body.asked) {
          const Made<Action> made = agents[i].act();
          EXPECT_TRUE(made.outcome) << made.outcome.message();
          if (!made.outcome.ready()) continue;
          judge(agents[i], made.value.branches[0] == right(i, body.thing));
          EXPECT_TRUE(agents[i].end_episode(EpisodeEnd::terminated));
          decisions = 1;
        }
        // By what was seen before, not by the frame: a slow device may answer each third frame.
        body.thing = (body.seen++ + i) % kThings;
        body.asked = true;
        EXPECT_TRUE(agents[i].observe(one_hot<kThings>(body.thing)));
      }
      return decisions;
    });
  }

  void expect_solved() {
    for (std::uint32_t i = 0; i < agents.size(); ++i) {
      pass([&] { ASSERT_WORKS(agents[i].end_episode(EpisodeEnd::terminated)); });
      ASSERT_WORKS(agents[i].set_mode(Mode::inference));
      for (std::uint32_t thing = 0; thing < kThings; ++thing)
        EXPECT_EQ(decide(agents[i], one_hot<kThings>(thing)).branches[0], right(i, thing))
            << "brain " << i << ", thing " << thing;
    }
  }
};

TEST_F(BanditTest, DqnSolvesItByRewards) {
  BrainDesc desc = describe(IMP_LEARNER_DQN, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(500, [](Agent& agent, bool good) { ASSERT_WORKS(agent.reward(good ? 1.0f : 0.0f)); });
  expect_solved();
  for (std::uint32_t i = 0; i < agents.size(); ++i) {
    const imp_action action = decide(agents[i], one_hot<kThings>(1));
    for (std::uint32_t option = 0; option < kOptions; ++option)
      EXPECT_NEAR(action.values[option], option == right(i, 1) ? 1.0f : 0.0f, 0.15f)
          << "the reward itself: it is the last step";
  }
}

TEST_F(BanditTest, DqnTakesFeedbackForReward) {
  add(describe(IMP_LEARNER_DQN, kThings, kOptions));
  train(500, [&](Agent& agent, bool good) {
    ASSERT_WORKS(agent.feedback(good ? 1.0f : -1.0f, now(), Credit::current, 0.5f));
  });
  expect_solved();
  const imp_action action = decide(agents[0], one_hot<kThings>(0));
  EXPECT_NEAR(action.values[0], 0.5f, 0.15f);
}

TEST_F(BanditTest, CoachSolvesItByFeedback) {
  BrainDesc desc = describe(IMP_LEARNER_COACH, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(500, [&](Agent& agent, bool good) {
    ASSERT_WORKS(agent.feedback(good ? 1.0f : -1.0f, now(), Credit::current));
  });
  expect_solved();
  EXPECT_EQ(brain.stats().value.samples, 0u) << "it keeps none";
  EXPECT_GT(brain.stats().value.minibatches, 300u);
}

// It ignores future states, so truncated and terminated episodes are equal, and it needs no last observation.
TEST_F(BanditTest, CoachLearnsFromTheLastStepOfAnEpisodeThatWasCutOff) {
  add(describe(IMP_LEARNER_COACH, kThings, kOptions));
  const auto seen = one_hot<kThings>(0);
  const imp_action first = decide(agents[0], seen);
  pass([&] {
    EXPECT_TRUE(agents[0].feedback(1, now(), Credit::current));
    EXPECT_TRUE(agents[0].end_episode(EpisodeEnd::truncated));
  });
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (brain.stats().value.minibatches == 0 && std::chrono::steady_clock::now() < patience) pass([] {});
  EXPECT_EQ(brain.stats().value.minibatches, 1u);
  for (int i = 0; i < 30; ++i) pass([] {});  // a step's result takes effect a period after it began
  const imp_action last = decide(agents[0], seen);
  EXPECT_GT(last.values[first.branches[0]], first.values[first.branches[0]]);
}

TEST_F(BanditTest, PpoSolvesItByRewards) {
  BrainDesc desc = describe(IMP_LEARNER_PPO, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(1500, [](Agent& agent, bool good) { ASSERT_WORKS(agent.reward(good ? 1.0f : 0.0f)); });
  expect_solved();
}

TEST_F(BanditTest, PqnSolvesItByRewardsOfAnySize) {
  BrainDesc desc = describe(IMP_LEARNER_PQN, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(1000, [](Agent& agent, bool good) { ASSERT_WORKS(agent.reward(good ? 200.0f : 0.0f)); });
  expect_solved();
  for (std::uint32_t i = 0; i < agents.size(); ++i)
    EXPECT_NEAR(decide(agents[i], one_hot<kThings>(1)).values[right(i, 1)], 200, 30);
}

// One thing is right for the whole population, of which the first brain is the mean.
TEST_F(BanditTest, EsMovesThePopulationToWhatEarnsMore) {
  BrainDesc desc = describe(small<EsOptions>(), kThings, 2);
  desc.hidden_sizes = {};
  desc.brain_count = 9;
  add(desc);
  struct Body {
    std::uint32_t seen = 0;
    bool asked = false;
  };
  std::vector<Body> bodies(agents.size());
  play_until(600, [&] {
    int decisions = 0;
    for (std::uint32_t i = 0; i < agents.size(); ++i) {
      if (bodies[i].asked) {
        const Made<Action> made = agents[i].act();
        EXPECT_TRUE(made.outcome) << made.outcome.message();
        if (!made.outcome.ready()) continue;
        EXPECT_TRUE(agents[i].reward(made.value.branches[0] == 1 ? 3.0f : -2.0f));
        EXPECT_TRUE(agents[i].end_episode(EpisodeEnd::terminated));
        decisions = 1;
      }
      bodies[i].asked = true;
      EXPECT_TRUE(agents[i].observe(one_hot<kThings>((bodies[i].seen++ + i) % kThings)));
    }
    return decisions;
  });
  pass([&] { ASSERT_WORKS(agents[0].end_episode(EpisodeEnd::terminated)); });
  ASSERT_WORKS(agents[0].set_mode(Mode::inference));
  for (std::uint32_t thing = 0; thing < kThings; ++thing)
    EXPECT_EQ(decide(agents[0], one_hot<kThings>(thing)).branches[0], 1u) << "thing " << thing;
}

TEST_F(BanditTest, WithoutAWordNothingIsLearned) {
  add(describe(IMP_LEARNER_COACH, kThings, kOptions));
  const Made<BrainHash> before = brain.hash();
  const imp_action first = decide(agents[0], one_hot<kThings>(0));
  train(60, [](Agent&, bool) {});
  pass([&] { EXPECT_TRUE(agents[0].end_episode(EpisodeEnd::terminated)); });
  const imp_action last = decide(agents[0], one_hot<kThings>(0));
  for (std::uint32_t option = 0; option < kOptions; ++option)
    EXPECT_EQ(first.values[option], last.values[option]);
  EXPECT_FALSE(brain.hash().value == before.value) << "but the trace is there";
}

// ---- a corridor of five places: one step right of the last there is a reward

constexpr std::uint32_t kPlaces = 5, kWays = 2;

class CorridorTest : public LearnersTest {
 protected:
  // Walks; a walk of more than `limit` steps is truncated.
  void walk(int decisions, int limit) {
    std::uint32_t place = 0, starts = 0;
    int steps = 0;
    bool asked = false;
    Agent& agent = agents[0];
    play_until(decisions, [&] {
      const bool acts = asked;
      if (asked) {
        const Made<Action> made = agent.act();
        EXPECT_TRUE(made.outcome) << made.outcome.message();
        if (!made.outcome.ready()) return 0;
        ++steps;
        if (made.value.branches[0] == 0) place -= place > 0 ? 1 : 0;
        const bool arrives = made.value.branches[0] == 1 && place == kPlaces - 1;
        if (made.value.branches[0] == 1 && !arrives) ++place;
        if (arrives) {
          EXPECT_TRUE(agent.reward(1));
          EXPECT_TRUE(agent.end_episode(EpisodeEnd::terminated));
        } else if (steps == limit) {
          EXPECT_TRUE(agent.observe(one_hot<kPlaces>(place)));
          EXPECT_TRUE(agent.end_episode(EpisodeEnd::truncated));
        }
        if (arrives || steps == limit) place = starts++ % kPlaces, steps = 0;
      }
      asked = true;
      EXPECT_TRUE(agent.observe(one_hot<kPlaces>(place)));
      return acts ? 1 : 0;
    });
    pass([&] { ASSERT_WORKS(agent.end_episode(EpisodeEnd::terminated)); });
    ASSERT_WORKS(agent.set_mode(Mode::inference));
  }

  void expect_solved(double tolerance) {
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      const imp_action action = decide(agents[0], one_hot<kPlaces>(place));
      EXPECT_EQ(action.branches[0], 1u) << "place " << place;
      EXPECT_NEAR(action.values[1], std::pow(0.9, kPlaces - 1 - place), tolerance) << "place " << place;
    }
  }
};

TEST_F(CorridorTest, DqnFindsTheWayAndItsValue) {
  add(describe(IMP_LEARNER_DQN, kPlaces, kWays));
  walk(1200, 12);
  expect_solved(0.12);
  EXPECT_GT(brain.stats().value.samples, 800u);
}

TEST_F(CorridorTest, PpoFindsTheWay) {
  add(describe(IMP_LEARNER_PPO, kPlaces, kWays));
  walk(2500, 12);
  for (std::uint32_t place = 0; place < kPlaces; ++place)
    EXPECT_EQ(decide(agents[0], one_hot<kPlaces>(place)).branches[0], 1u) << "place " << place;
}

TEST_F(CorridorTest, PqnFindsTheWayAndItsValue) {
  add(describe(IMP_LEARNER_PQN, kPlaces, kWays));
  walk(2500, 12);
  expect_solved(0.12);
}

TEST_F(CorridorTest, SoDoesDoubleDqnWithASlowTarget) {
  BrainDesc desc = describe(IMP_LEARNER_DQN, kPlaces, kWays);
  DqnOptions& options = std::get<DqnOptions>(desc.learner);
  options.double_estimate = 1;
  options.target_period = 1;
  options.target_rate = 0.05f;
  options.epsilon = 0.2f;
  options.epsilon_decisions = 400;
  add(desc);
  walk(1200, 12);
  expect_solved(0.12);
}

// One state and one reward per step, without end: its value is reward / (1 - discount), unless the episode
// terminates.
class EndsTest : public LearnersTest {
 protected:
  float worth(EpisodeEnd end, bool looks_at_last) {
    BrainDesc desc = describe(IMP_LEARNER_DQN, 1, kWays);
    std::get<DqnOptions>(desc.learner).discount = 0.8f;
    std::get<DqnOptions>(desc.learner).epsilon = 0.5f;
    add(desc);
    const float seen[] = {1};
    bool asked = false;
    int steps = 0;
    play_until(700, [&] {
      const bool acts = asked;
      if (asked) {
        const Made<Action> made = agents[0].act();
        EXPECT_TRUE(made.outcome) << made.outcome.message();
        if (!made.outcome.ready()) return 0;
        EXPECT_TRUE(agents[0].reward(0.2f));
        if (++steps % 3 == 0) {
          if (looks_at_last) EXPECT_TRUE(agents[0].observe(seen));
          EXPECT_TRUE(agents[0].end_episode(end));
        }
      }
      asked = true;
      EXPECT_TRUE(agents[0].observe(seen));
      return acts ? 1 : 0;
    });
    EXPECT_TRUE(agents[0].set_mode(Mode::inference));
    return decide(agents[0], seen).values[0];
  }
};

TEST_F(EndsTest, ATruncatedEpisodeKeepsItsFutureValue) {
  EXPECT_NEAR(worth(EpisodeEnd::truncated, true), 1, 0.15);
}
TEST_F(EndsTest, ATruncatedEndWithoutObservationIsNotLearned) {
  EXPECT_NEAR(worth(EpisodeEnd::truncated, false), 1, 0.15);
  EXPECT_GT(brain.stats().value.dropped_unfollowed, 100u);
  EXPECT_EQ(brain.stats().value.dropped_samples, brain.stats().value.dropped_unfollowed);
  ASSERT_EQ(log.size(), 1u) << "said once";
  EXPECT_THAT(log[0], HasSubstr("dropped_unfollowed"));
  EXPECT_THAT(log[0], HasSubstr("Call agent_observe with the last state"));
  log.clear();
}
// A third of the steps is the last one, at random: v = 0.2 + 0.8 * 2/3 v.
TEST_F(EndsTest, ATerminatedEpisodeHasNoFutureValue) {
  EXPECT_NEAR(worth(EpisodeEnd::terminated, true), 0.2 / (1 - 0.8 * 2 / 3), 0.15);
}

}  // namespace

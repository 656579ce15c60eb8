// The learners from steps, through the table: each learns something that has a known answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/learning_game.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;
using imprint::game::test::one_hot;

// Options that all tests of this file use: rewards only, or feedback with exact credit, so that no wait is
// needed.
template <class Options>
Options prompt() {
  Options options;
  options.learn_period_frames = 1;
  options.credit_delay_s = 0;
  options.credit_width_s = 1e-3f;
  return options;
}

DqnOptions dqn() {
  auto options = prompt<DqnOptions>();
  options.learning_rate = 3e-3f;
  options.replay_capacity = 1000;
  options.target_period = 20;
  options.target_rate = 1;
  options.discount = 0.9f;
  options.epsilon = 0.3f;
  options.epsilon_decisions = 0;
  return options;
}

CoachOptions coach() {
  auto options = prompt<CoachOptions>();
  options.learning_rate = 0.3f;
  return options;
}

PpoOptions ppo() {
  auto options = prompt<PpoOptions>();
  options.learning_rate = 1e-2f;
  options.rollout_steps = 64;
  options.batch_size = 32;
  options.discount = 0.9f;
  options.normalise_observations = options.normalise_rewards = 0;
  options.max_divergence = 0;
  return options;
}

SacOptions sac() {
  auto options = prompt<SacOptions>();
  options.learning_rate = 3e-3f;
  options.replay_capacity = 1000;
  options.discount = 0;
  return options;
}

BanditOptions bandit() {
  auto options = prompt<BanditOptions>();
  options.replay_capacity = 1000;
  return options;
}

PqnOptions pqn() {
  auto options = prompt<PqnOptions>();
  options.learning_rate = 1e-2f, options.rollout_steps = 64, options.batch_size = 32;
  options.discount = 0.9f, options.epsilon = 0.2f, options.epsilon_decisions = 1;
  return options;
}

template <class Options>
BrainDesc describe(const Options& options, std::uint32_t observations, std::uint32_t choices) {
  BrainDesc desc;
  desc.observation_count = observations;
  if constexpr (std::is_same_v<Options, SacOptions>)
    desc.continuous_count = 1;
  else
    desc.branch_sizes = {choices};
  desc.hidden_sizes = {24};
  desc.activation = Activation::tanh;
  desc.action_latency_frames = 1;
  desc.learner = options;
  desc.snapshot_count = 1;
  desc.seed = 3;
  return desc;
}

BrainDesc describe(imp_learner learner, std::uint32_t observations, std::uint32_t choices) {
  switch (learner) {
    case IMP_LEARNER_DQN:
      return describe(dqn(), observations, choices);
    case IMP_LEARNER_COACH:
      return describe(coach(), observations, choices);
    case IMP_LEARNER_PPO:
      return describe(ppo(), observations, choices);
    case IMP_LEARNER_SAC:
      return describe(sac(), observations, choices);
    case IMP_LEARNER_BANDIT:
      return describe(bandit(), observations, choices);
    case IMP_LEARNER_PQN:
      return describe(pqn(), observations, choices);
    default:
      return describe(prompt<FeedbackOptions>(), observations, choices);
  }
}

class LearnersTest : public imprint::game::test::LearningGame {
 protected:
  // Runs frames until `decisions` decisions and a tenth as many minibatches are complete. A software device
  // may lag. play returns its number of decisions.
  void play_until(int decisions, const std::function<int()>& play) {
    const std::uint64_t minibatches =
        brain.stats().value.minibatches + static_cast<std::uint64_t>(decisions) / 10;
    int made = 0;
    const auto patience =
        std::chrono::steady_clock::now() + std::chrono::minutes(3);  // even on a busy machine
    while ((made < decisions || brain.stats().value.minibatches < minibatches) &&
           std::chrono::steady_clock::now() < patience) {
      pass([&] { made += play(); });
      if (HasFatalFailure()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // the game's own time
    }
    EXPECT_GE(made, decisions) << "the device is far too slow for this";
  }

  // Returns an agent's choice for an observation, after as many frames as that takes.
  imp_action decide(Agent& agent, std::span<const float> observation) {
    pass([&] { EXPECT_TRUE(agent.observe(observation)); });
    imp_action action = imp_action_init();
    for (bool ready = false; !ready;)
      pass([&] {
        Made<Action> made = agent.act();
        EXPECT_TRUE(made.outcome) << made.outcome.message();
        ready = made || !made.outcome;
        action = made.value;
      });
    return action;
  }
};

// ---- a contextual bandit, of a kennel: what is right depends on what is seen, and is another thing for each
// brain

constexpr std::uint32_t kThings = 3, kOptions = 4;

class BanditTest : public LearnersTest {
 protected:
  std::uint32_t right(std::uint32_t brain_index, std::uint32_t thing) const {
    return (thing + brain_index) % kOptions;
  }

  void train(int rounds, const std::function<void(Agent& agent, bool good)>& judge) {
    struct Body {
      std::uint32_t thing = 0;
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
        body.thing = static_cast<std::uint32_t>((frame * 7 + i) % kThings);
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

// ---- what is refused, and what is never chosen

class EveryLearner : public LearnersTest, public testing::WithParamInterface<imp_learner> {};

class LearnerOfChoices : public EveryLearner {};

TEST_P(LearnerOfChoices, KeepsToTheMaskHoweverItExplores) {
  BrainDesc desc = describe(GetParam(), kThings, kOptions);
  if (auto* options = std::get_if<DqnOptions>(&desc.learner)) options->epsilon = 1;
  if (auto* options = std::get_if<PqnOptions>(&desc.learner)) options->epsilon = 1;
  add(desc);
  const std::uint8_t allowed[] = {0, 1, 0, 1};
  std::array<int, kOptions> chosen{};
  ASSERT_WORKS(agents[0].set_mask(allowed));
  for (int i = 0; i < 60; ++i) ++chosen[decide(agents[0], one_hot<kThings>(i % kThings)).branches[0]];
  EXPECT_EQ(chosen[0] + chosen[2], 0);
  EXPECT_GT(chosen[1], 5);
  EXPECT_GT(chosen[3], 5);
}

TEST_P(EveryLearner, RefusesSignalsThatItDoesNotLearnFrom) {
  add(describe(GetParam(), kThings, kOptions));
  const auto seen = one_hot<kThings>(0);
  Demonstration shown;
  shown.observation = seen;
  pass([&] {
    const Outcome refused = agents[0].demonstrate(shown);
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("does not learn from demonstrations"));
    EXPECT_EQ(agents[0].reward(std::nanf("")).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(2, now()).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(std::nanf(""), now()).code(), Code::invalid_argument);
    EXPECT_TRUE(agents[0].reward(1)) << "no step is in progress, so nothing happens";
  });
  EXPECT_EQ(brain.stats().value.samples, 0u);
}

TEST_P(EveryLearner, FilesOfOtherLearnersAreRefused) {
  const std::string path = testing::TempDir() + "imprint-learner-" + std::to_string(GetParam()) + ".brain";
  add(describe(GetParam(), kThings, kOptions));
  ASSERT_WORKS(brain.save(path.c_str()));
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_EQ(brain.save_status().result(), IMP_OK);
  ASSERT_WORKS(brain.load(path.c_str()));
  for (const imp_learner other : {IMP_LEARNER_FEEDBACK, IMP_LEARNER_DQN, IMP_LEARNER_COACH, IMP_LEARNER_PPO,
                                  IMP_LEARNER_SAC, IMP_LEARNER_BANDIT, IMP_LEARNER_PQN}) {
    if (other == GetParam()) continue;
    Made<Brain> made = context.create_brain(describe(other, kThings, kOptions));
    ASSERT_TRUE(made) << made.outcome.message();
    const Made<BrainHash> before = made->hash();
    const Outcome refused = made->load(path.c_str());
    EXPECT_EQ(refused.code(), Code::shape_mismatch);
    EXPECT_THAT(refused.message(), HasSubstr("learner "));
    EXPECT_TRUE(made->hash().value == before.value);
  }
  (void)std::remove(path.c_str());
}

std::string learner_of(const testing::TestParamInfo<imp_learner>& learner) {
  static const char* const kNames[] = {"none", "feedback", "cloning", "dqn", "coach",
                                       "ppo",  "sac",      "bandit",  "pqn"};
  return kNames[learner.param];
}
INSTANTIATE_TEST_SUITE_P(Steps, EveryLearner,
                         testing::Values(IMP_LEARNER_DQN, IMP_LEARNER_COACH, IMP_LEARNER_PPO, IMP_LEARNER_SAC,
                                         IMP_LEARNER_BANDIT, IMP_LEARNER_PQN),
                         learner_of);
INSTANTIATE_TEST_SUITE_P(Steps, LearnerOfChoices,
                         testing::Values(IMP_LEARNER_DQN, IMP_LEARNER_COACH, IMP_LEARNER_PPO,
                                         IMP_LEARNER_PQN),
                         learner_of);

TEST_F(LearnersTest, SettingsOutOfRangeAreRefusedByName) {
  const auto expect_desc = [&](const BrainDesc& desc, Code code, const char* text) {
    const Made<Brain> made = context.create_brain(desc);
    EXPECT_EQ(made.outcome.code(), code) << text;
    EXPECT_THAT(made.outcome.message(), HasSubstr(text));
  };
  const auto expect = [&](auto options, const char* text, auto change) {
    change(options);
    expect_desc(describe(options, kThings, kOptions), Code::invalid_argument, text);
  };
  expect(dqn(), "discount", [](DqnOptions& o) { o.discount = 1.5f; });
  expect(dqn(), "discount", [](DqnOptions& o) { o.discount = std::nanf(""); });
  expect(dqn(), "target_rate", [](DqnOptions& o) { o.target_rate = -1; });
  expect(dqn(), "target_rate", [](DqnOptions& o) { o.target_rate = 0; });
  expect(dqn(), "target_period", [](DqnOptions& o) { o.target_period = 1u << 30; });
  expect(dqn(), "epsilon", [](DqnOptions& o) { o.epsilon = 1.5f; });
  expect(ppo(), "rollout_steps", [](PpoOptions& o) { o.rollout_steps = 1u << 20; });
  expect(ppo(), "epochs", [](PpoOptions& o) { o.epochs = 1000; });
  expect(ppo(), "divisor of rollout_steps", [](PpoOptions& o) { o.rollout_steps = 48; });
  expect(ppo(), "advantage_decay", [](PpoOptions& o) { o.advantage_decay = 2; });
  expect(ppo(), "clip_range", [](PpoOptions& o) { o.clip_range = std::nanf(""); });
  expect(ppo(), "entropy_coefficient", [](PpoOptions& o) { o.entropy_coefficient = -1; });
  expect(pqn(), "trace_decay", [](PqnOptions& o) { o.trace_decay = 1.5f; });
  expect(pqn(), "normalise_rewards", [](PqnOptions& o) { o.normalise_rewards = 2; });
  expect(sac(), "discount", [](SacOptions& o) { o.discount = -1; });
  expect(sac(), "target_rate", [](SacOptions& o) { o.target_rate = 0; });
  expect(sac(), "entropy_per_action", [](SacOptions& o) { o.entropy_per_action = std::nanf(""); });
  expect(bandit(), "drift", [](BanditOptions& o) { o.drift = 1.5f; });
  expect(bandit(), "thompson", [](BanditOptions& o) { o.thompson = 2; });
  expect(coach(), "trace_decay", [](CoachOptions& o) { o.trace_decay = 1; });
  BrainDesc desc = describe(dqn(), kThings, kOptions);
  desc.branch_sizes = {};
  desc.continuous_count = 1;
  expect_desc(desc, Code::unsupported, "exactly one branch");
  desc = describe(coach(), kThings, kOptions);
  desc.continuous_count = 1;
  expect_desc(desc, Code::unsupported, "choices only");
  desc = describe(sac(), kThings, kOptions);
  desc.branch_sizes = {kOptions};
  expect_desc(desc, Code::unsupported, "continuous actions only");
}

// Without options a learner uses its own defaults, however the descriptor was made.
TEST_F(LearnersTest, MissingOptionsAreTheLearnersDefaults) {
  const auto hash_after = [&](const imp_brain_desc& desc) {
    Made<Brain> made = context.create_brain(desc);
    EXPECT_TRUE(made.outcome) << made.outcome.message();
    Made<Agent> agent = made->create_agent();
    EXPECT_TRUE(context.warmup());
    std::uint64_t steps = 0;
    for (int i = 0; i < 700 && made->stats().value.minibatches < 1; ++i) {
      pass([&] {
        if (agent->act().outcome.ready() && i > 0) EXPECT_TRUE(agent->reward(i % 3 ? 0.5f : -0.5f));
        EXPECT_TRUE(agent->observe(one_hot<kThings>(static_cast<std::uint32_t>(steps++ % kThings))));
      });
      EXPECT_TRUE(context.drain(60'000));
    }
    const BrainHash hash = made->hash().value;
    agent->reset();
    frame = 0;
    return hash;
  };
  imp_brain_desc desc = imp_brain_desc_init();
  const std::uint32_t choices = kOptions;
  desc.observation_count = kThings;
  desc.branch_count = 1;
  desc.branch_sizes = &choices;
  const imp_dqn_options dqn_defaults = imp_dqn_options_init();
  const imp_coach_options coach_defaults = imp_coach_options_init();
  const imp_ppo_options ppo_defaults = imp_ppo_options_init();
  const imp_sac_options sac_defaults = imp_sac_options_init();
  const imp_bandit_options bandit_defaults = imp_bandit_options_init();
  const imp_pqn_options pqn_defaults = imp_pqn_options_init();
  const std::pair<imp_learner, const void*> learners[] = {
      {IMP_LEARNER_DQN, &dqn_defaults},       {IMP_LEARNER_COACH, &coach_defaults},
      {IMP_LEARNER_PPO, &ppo_defaults},       {IMP_LEARNER_SAC, &sac_defaults},
      {IMP_LEARNER_BANDIT, &bandit_defaults}, {IMP_LEARNER_PQN, &pqn_defaults}};
  for (const auto& [learner, defaults] : learners) {
    desc.learner = learner;
    desc.branch_count = learner != IMP_LEARNER_SAC;
    desc.continuous_count = learner == IMP_LEARNER_SAC;
    desc.header.next = nullptr;
    const BrainHash without = hash_after(desc);
    TearDown();
    SetUp();
    desc.header.next = defaults;
    EXPECT_EQ(hash_after(desc), without) << learner;
    TearDown();
    SetUp();
  }
}

TEST_F(LearnersTest, AnUpdateThatCannotBeRecordedIsRefusedByWarmup) {
  BrainDesc desc = describe(IMP_LEARNER_PPO, kThings, kOptions);
  PpoOptions& options = std::get<PpoOptions>(desc.learner);
  options.rollout_steps = 65536;
  options.epochs = 64;
  options.batch_size = 1;
  Made<Brain> made = context.create_brain(desc);
  ASSERT_TRUE(made) << made.outcome.message();
  const Outcome refused = context.warmup();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.message(), HasSubstr("with 4194304 turns of "));
  EXPECT_THAT(refused.message(), HasSubstr("expected at most 1048576"));
  made->reset();
  ASSERT_WORKS(context.warmup());  // which still serves other brains
}

}  // namespace

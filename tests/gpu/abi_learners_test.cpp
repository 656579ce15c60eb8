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
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

constexpr std::uint32_t kHidden[] = {24};

imp_brain_desc describe(imp_learner learner, std::uint32_t observations, const std::uint32_t& choices) {
  imp_brain_desc desc = imp_brain_desc_init_for(learner);
  desc.observation_count = observations;
  desc.branch_count = 1;
  desc.branch_sizes = &choices;
  desc.hidden_count = 1;
  desc.hidden_sizes = kHidden;
  desc.activation = IMP_ACTIVATION_TANH;
  desc.action_latency_frames = 1;
  desc.learn_period_frames = 1;
  desc.credit_delay_s = 0;  // rewards only, or feedback with exact credit: nothing to wait for
  desc.credit_width_s = 1e-3f;
  desc.snapshot_count = 1;
  desc.seed = 3;
  switch (learner) {
    case IMP_LEARNER_DQN:
      desc.learning_rate = 3e-3f;
      desc.replay_capacity = 1000;
      desc.target_period = 20;
      desc.discount = 0.9f;
      desc.epsilon = 0.3f;
      desc.epsilon_decisions = 0;
      break;
    case IMP_LEARNER_COACH:
      desc.learning_rate = 0.3f;
      break;
    case IMP_LEARNER_PPO:
      desc.learning_rate = 1e-2f;
      desc.rollout_steps = 64;
      desc.batch_size = 32;
      desc.discount = 0.9f;
      break;
    default:
      break;
  }
  return desc;
}

template <std::size_t N>
std::array<float, N> one_hot(std::uint32_t index) {
  std::array<float, N> observation{};
  observation[index] = 1;
  return observation;
}

class LearnersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* name = std::getenv("IMPRINT_TEST_DEVICE");
    const char* validation = std::getenv("IMPRINT_TEST_VALIDATION");
    imp_standalone_info device = imp_standalone_info_init();
    device.device = name;
    device.validation = !validation || std::string(validation) != "0";
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000;
    imp_host host = imp_host_init();
    host.user = this;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<LearnersTest*>(user)->log.emplace_back(text);
    };
    Made<Context> made = Context::create_standalone(load(imp_get_api), device, &host, &limits);
    ASSERT_TRUE(made) << made.status.message();
    context = std::move(*made);
  }
  void TearDown() override {
    const imp_context_stats stats = context.stats().value;
    EXPECT_EQ(stats.frame_compiles, 0u);
    EXPECT_EQ(stats.frame_allocations, 0u);
    EXPECT_EQ(stats.frame_waits, 0u);
    agents.clear();
    brain.reset();
    context.reset();
    EXPECT_TRUE(log.empty()) << log.front();
  }

  // With one agent for each of its brains.
  void add(const imp_brain_desc& desc) {
    Made<Brain> made = context.create_brain(desc);
    ASSERT_TRUE(made) << made.status.message();
    brain = std::move(*made);
    agents.clear();
    for (std::uint32_t i = 0; i < desc.brain_count; ++i) {
      Made<Agent> agent = brain.create_agent(i);
      ASSERT_TRUE(agent) << agent.status.message();
      agents.push_back(std::move(*agent));
    }
    ASSERT_WORKS(context.warmup());
  }

  void pass(const std::function<void()>& play) {
    ++frame;
    ASSERT_WORKS(context.frame_begin(frame, now()));
    play();
    ASSERT_WORKS(context.submit());
    ASSERT_WORKS(context.frame_end());
  }
  double now() const { return static_cast<double>(frame) / 60; }

  // Frames until so many decisions were made and so many minibatches learned from: a software device is
  // behind now and then. play gives how many decisions it made.
  void play_until(int decisions, const std::function<int()>& play) {
    const std::uint64_t minibatches =
        brain.stats().value.minibatches + static_cast<std::uint64_t>(decisions) / 10;
    int made = 0;
    const auto patience =
        std::chrono::steady_clock::now() + std::chrono::minutes(3);  // however much else its machine does
    while ((made < decisions || brain.stats().value.minibatches < minibatches) &&
           std::chrono::steady_clock::now() < patience) {
      pass([&] { made += play(); });
      if (HasFatalFailure()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // the game's own time
    }
    EXPECT_GE(made, decisions) << "the device is far too slow for this";
  }

  // What an agent does for an observation, frames passing until it is known.
  imp_action decide(Agent& agent, std::span<const float> observation) {
    pass([&] { EXPECT_TRUE(agent.observe(observation)); });
    imp_action action = imp_action_init();
    for (bool ready = false; !ready;)
      pass([&] {
        Made<imp_action> made = agent.act();
        EXPECT_TRUE(made) << made.status.message();
        ready = made.status.ready() || !made;
        action = made.value;
      });
    return action;
  }

  Context context;
  Brain brain;
  std::vector<Agent> agents;
  std::vector<std::string> log;
  std::uint64_t frame = 0;
};

// ---- a contextual bandit, of a kennel: what is right depends on what is seen, and is another thing for each
// brain -------------------------------------

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
          const Made<imp_action> made = agents[i].act();
          EXPECT_TRUE(made) << made.status.message();
          if (!made.status.ready()) continue;
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
  imp_brain_desc desc = describe(IMP_LEARNER_DQN, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(500, [](Agent& agent, bool good) { ASSERT_WORKS(agent.reward(good ? 1.0f : 0.0f)); });
  expect_solved();
  for (std::uint32_t i = 0; i < agents.size(); ++i) {
    const imp_action action = decide(agents[i], one_hot<kThings>(1));
    for (std::uint32_t option = 0; option < kOptions; ++option)
      EXPECT_NEAR(action.values[option], option == right(i, 1) ? 1.0f : 0.0f, 0.15f)
          << "the reward itself, since nothing comes after it";
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
  imp_brain_desc desc = describe(IMP_LEARNER_COACH, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(500, [&](Agent& agent, bool good) {
    ASSERT_WORKS(agent.feedback(good ? 1.0f : -1.0f, now(), Credit::current));
  });
  expect_solved();
  EXPECT_EQ(brain.stats().value.samples, 0u) << "it keeps none";
  EXPECT_GT(brain.stats().value.minibatches, 300u);
}

// It looks at no state to come, so a cut-off episode is as good as an ended one, and needs no last sight.
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
  imp_brain_desc desc = describe(IMP_LEARNER_PPO, kThings, kOptions);
  desc.brain_count = 3;
  add(desc);
  train(1500, [](Agent& agent, bool good) { ASSERT_WORKS(agent.reward(good ? 1.0f : 0.0f)); });
  expect_solved();
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
// -------------------------------------------------------------------------

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
        const Made<imp_action> made = agent.act();
        EXPECT_TRUE(made) << made.status.message();
        if (!made.status.ready()) return 0;
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

TEST_F(CorridorTest, DqnFindsTheWayAndWhatItIsWorth) {
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

TEST_F(CorridorTest, SoDoesDoubleDqnWithASlowTarget) {
  imp_brain_desc desc = describe(IMP_LEARNER_DQN, kPlaces, kWays);
  desc.double_estimate = 1;
  desc.target_period = 1;
  desc.target_rate = 0.05f;
  desc.epsilon = 0.2f;
  desc.epsilon_decisions = 400;
  add(desc);
  walk(1200, 12);
  expect_solved(0.12);
}

// One state, one reward a step, for ever: worth reward / (1 - discount), unless the end of an episode is an
// end.
class EndsTest : public LearnersTest {
 protected:
  float worth(EpisodeEnd end, bool looks_at_last) {
    imp_brain_desc desc = describe(IMP_LEARNER_DQN, 1, kWays);
    desc.discount = 0.8f;
    desc.epsilon = 0.5f;
    add(desc);
    const float seen[] = {1};
    bool asked = false;
    int steps = 0;
    play_until(700, [&] {
      const bool acts = asked;
      if (asked) {
        const Made<imp_action> made = agents[0].act();
        EXPECT_TRUE(made) << made.status.message();
        if (!made.status.ready()) return 0;
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

TEST_F(EndsTest, WhatWasTruncatedWouldHaveGoneOn) {
  EXPECT_NEAR(worth(EpisodeEnd::truncated, true), 1, 0.15);
}
TEST_F(EndsTest, ATruncatedEndThatNobodySawIsNotLearnedFrom) {
  EXPECT_NEAR(worth(EpisodeEnd::truncated, false), 1, 0.15);
}
// A third of the steps has nothing behind it, and nothing tells which: v = 0.2 + 0.8 * 2/3 v.
TEST_F(EndsTest, WhatWasTerminatedIsOver) {
  EXPECT_NEAR(worth(EpisodeEnd::terminated, true), 0.2 / (1 - 0.8 * 2 / 3), 0.15);
}

// ---- what is refused, and what is never chosen
// ----------------------------------------------------------------------------------------------------------

class EveryLearner : public LearnersTest, public testing::WithParamInterface<imp_learner> {};

TEST_P(EveryLearner, KeepsToTheMaskHoweverItExplores) {
  imp_brain_desc desc = describe(GetParam(), kThings, kOptions);
  desc.epsilon = 1;
  add(desc);
  const std::uint8_t allowed[] = {0, 1, 0, 1};
  std::array<int, kOptions> chosen{};
  ASSERT_WORKS(agents[0].set_mask(allowed));
  for (int i = 0; i < 60; ++i) ++chosen[decide(agents[0], one_hot<kThings>(i % kThings)).branches[0]];
  EXPECT_EQ(chosen[0] + chosen[2], 0);
  EXPECT_GT(chosen[1], 5);
  EXPECT_GT(chosen[3], 5);
}

TEST_P(EveryLearner, RefusesWhatItCannotLearnFrom) {
  add(describe(GetParam(), kThings, kOptions));
  const auto seen = one_hot<kThings>(0);
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen.data();
  shown.observation_count = kThings;
  pass([&] {
    const Status refused = agents[0].demonstrate(shown);
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("does not learn from demonstrations"));
    EXPECT_EQ(agents[0].reward(std::nanf("")).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(2, now()).code(), Code::invalid_argument);
    EXPECT_EQ(agents[0].feedback(std::nanf(""), now()).code(), Code::invalid_argument);
    EXPECT_TRUE(agents[0].reward(1)) << "nothing is under way, and nothing happens";
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
  for (const imp_learner other :
       {IMP_LEARNER_FEEDBACK, IMP_LEARNER_DQN, IMP_LEARNER_COACH, IMP_LEARNER_PPO}) {
    if (other == GetParam()) continue;
    Made<Brain> made = context.create_brain(describe(other, kThings, kOptions));
    ASSERT_TRUE(made) << made.status.message();
    const Made<BrainHash> before = made->hash();
    const Status refused = made->load(path.c_str());
    EXPECT_EQ(refused.code(), Code::shape_mismatch);
    EXPECT_THAT(refused.message(), HasSubstr("learner "));
    EXPECT_TRUE(made->hash().value == before.value);
  }
  (void)std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Steps, EveryLearner,
                         testing::Values(IMP_LEARNER_DQN, IMP_LEARNER_COACH, IMP_LEARNER_PPO),
                         [](const auto& learner) {
                           return learner.param == IMP_LEARNER_DQN     ? "dqn"
                                  : learner.param == IMP_LEARNER_COACH ? "coach"
                                                                       : "ppo";
                         });

TEST_F(LearnersTest, SettingsOutOfRangeAreRefusedByName) {
  const auto expect = [&](imp_learner learner, Code code, const char* text, auto change) {
    imp_brain_desc desc = describe(learner, kThings, kOptions);
    change(desc);
    const Made<Brain> made = context.create_brain(desc);
    EXPECT_EQ(made.status.code(), code);
    EXPECT_THAT(made.status.message(), HasSubstr(text));
  };
  const Code invalid = Code::invalid_argument;
  expect(IMP_LEARNER_DQN, invalid, "discount", [](imp_brain_desc& d) { d.discount = 1.5f; });
  expect(IMP_LEARNER_DQN, invalid, "discount", [](imp_brain_desc& d) { d.discount = std::nanf(""); });
  expect(IMP_LEARNER_DQN, invalid, "target_rate", [](imp_brain_desc& d) { d.target_rate = -1; });
  expect(IMP_LEARNER_DQN, invalid, "target_period", [](imp_brain_desc& d) { d.target_period = 1u << 30; });
  expect(IMP_LEARNER_DQN, invalid, "epsilon", [](imp_brain_desc& d) { d.epsilon = 1.5f; });
  expect(IMP_LEARNER_PPO, invalid, "rollout_steps", [](imp_brain_desc& d) { d.rollout_steps = 1u << 20; });
  expect(IMP_LEARNER_PPO, invalid, "epochs", [](imp_brain_desc& d) { d.epochs = 1000; });
  expect(IMP_LEARNER_PPO, invalid, "divisor of rollout_steps",
         [](imp_brain_desc& d) { d.rollout_steps = 48; });
  expect(IMP_LEARNER_PPO, invalid, "advantage_decay", [](imp_brain_desc& d) { d.advantage_decay = 2; });
  expect(IMP_LEARNER_PPO, invalid, "clip_range", [](imp_brain_desc& d) { d.clip_range = std::nanf(""); });
  expect(IMP_LEARNER_PPO, invalid, "entropy_coefficient",
         [](imp_brain_desc& d) { d.entropy_coefficient = -1; });
  expect(IMP_LEARNER_COACH, invalid, "trace_decay", [](imp_brain_desc& d) { d.trace_decay = 1; });
  expect(IMP_LEARNER_DQN, Code::unsupported, "exactly one branch",
         [](imp_brain_desc& d) { d.branch_count = 0, d.continuous_count = 1; });
  expect(IMP_LEARNER_COACH, Code::unsupported, "choices only",
         [](imp_brain_desc& d) { d.continuous_count = 1; });
}

TEST_F(LearnersTest, AnUpdateThatCannotBeRecordedIsRefusedByWarmup) {
  imp_brain_desc desc = describe(IMP_LEARNER_PPO, kThings, kOptions);
  desc.rollout_steps = 65536;
  desc.epochs = 64;
  desc.batch_size = 1;
  Made<Brain> made = context.create_brain(desc);
  ASSERT_TRUE(made) << made.status.message();
  const Status refused = context.warmup();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.message(), HasSubstr("with 4194304 turns of "));
  EXPECT_THAT(refused.message(), HasSubstr("it may have 1048576"));
  made->reset();
  ASSERT_WORKS(context.warmup());  // which serves others as ever
}

}  // namespace

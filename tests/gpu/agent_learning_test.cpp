// Brains learn something real on the device, frame by frame: from praise, from demonstrations, alone and in a
// kennel.

#include <gmock/gmock.h>

#include <cmath>

#include "compute/base/philox.h"
#include "tests/gpu/agent_system.h"

namespace imprint::agent::test {
namespace {

// The agent observes one of four things as one of four lights, plus two inputs of noise. The right choice
// depends on the thing and on the goal.
constexpr std::uint32_t kThings = 4, kChoices = 4, kGoals = 2;

std::uint32_t right_choice(std::uint32_t thing, std::uint32_t goal) {
  return goal == 0 ? thing : (thing + 1) % kChoices;
}

std::array<float, kThings + 2> observation_of(std::uint32_t thing, std::uint32_t moment) {
  std::array<float, kThings + 2> observation{};
  observation[thing] = 1;
  for (std::uint32_t i = 0; i < 2; ++i)
    observation[kThings + i] = static_cast<float>(philox_uniform(moment, i, 0, 1, 2) - 0.5);
  return observation;
}

BrainSpec toy_spec() {
  BrainSpec spec;
  spec.observation.count = kThings + 2;
  spec.action.branch_sizes = {kChoices};
  spec.goal_count = kGoals;
  spec.hidden_sizes = {16, 16};
  spec.learner = LearnerKind::feedback;
  spec.learn_period_frames = 2;
  spec.batch_size = 16;
  spec.replay_capacity = 256;
  spec.learning_rate = 3e-3f;
  spec.seed = 5;
  return spec;
}

class Toy : public AgentSystemTest {
 protected:
  // Agents observe the same and are each praised or scolded for their choice. Returns the share of right
  // choices.
  double live(Brain& of, std::span<const std::uint32_t> agents, int moments, bool teach) {
    int right = 0, asked = 0;
    for (int i = 0; i < moments; ++i, ++moment_) {
      const std::uint32_t thing = moment_ * 7 % kThings, goal = moment_ / kThings % kGoals;
      pass([&] {
        for (const std::uint32_t agent : agents) {
          EXPECT_OK(of.agents().set_goal(agent, goal));
          EXPECT_OK(of.agents().observe(agent, observation_of(thing, moment_)));
        }
      });
      pass();
      pass([&] {
        for (const std::uint32_t agent : agents) {
          const auto answer = of.agents().act(agent);
          EXPECT_TRUE(answer.ok());
          if (!answer.ok()) continue;
          const bool good = (*answer)->choice.branches[0] == right_choice(thing, goal);
          right += good;
          ++asked;
          if (teach)
            EXPECT_OK(of.agents().feedback(agent, {good ? 1.0f : -1.0f, 1.0f, CreditKind::current, now()}));
        }
      });
    }
    return static_cast<double>(right) / asked;
  }

  std::uint32_t add_agent(Brain& of, std::uint32_t index, Mode mode) {
    const auto agent = of.agents().add(index);
    EXPECT_TRUE(agent.ok());
    EXPECT_OK(of.agents().set_mode(*agent, mode));
    return *agent;
  }

  std::uint32_t moment_ = 0;
};

TEST_F(Toy, PraiseAndScoldingTeach) {
  brain = add(toy_spec());
  ASSERT_TRUE(brain);
  const std::uint32_t agent[] = {add_agent(*brain, 0, Mode::learning)};
  live(*brain, agent, 200, true);
  EXPECT_OK(brain->agents().set_mode(agent[0], Mode::inference));
  EXPECT_GE(live(*brain, agent, 40, false), 0.95);
  const BrainStats stats = brain->stats();
  EXPECT_EQ(stats.counters.feedbacks, 200u);
  EXPECT_EQ(stats.counters.decisions, 240u);
  EXPECT_EQ(stats.samples, 200u);
  EXPECT_GT(stats.counters.minibatches, 250u);
  EXPECT_EQ(stats.late_actions, 0u);
  EXPECT_LT(stats.last_loss, 0.5f);
}

// Nothing is learned here, so only forbidden choices can change the answer.
TEST_F(Toy, AScoldedActionIsClosedUntilTheNextGoalAndAPunishedOneIsNot) {
  BrainSpec spec = toy_spec();
  spec.exploration = 0;
  brain = add(spec);
  ASSERT_TRUE(brain);
  ASSERT_OK(brain->set_learning(false));
  const std::uint32_t agent = add_agent(*brain, 0, Mode::learning);
  const auto choice = [&](const std::function<void()>& afterwards) {
    std::uint32_t made = kChoices;
    pass([&] { EXPECT_OK(brain->agents().observe(agent, observation_of(0, 0))); });
    pass();
    pass([&] {
      const auto answer = brain->agents().act(agent);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      made = (*answer)->choice.branches[0];
      afterwards();
    });
    return made;
  };
  const auto scold = [&](CreditKind credit) {
    EXPECT_OK(brain->agents().feedback(agent, {-1.0f, 1.0f, credit, now()}));
  };
  const std::uint32_t first = choice([&] { EXPECT_OK(brain->agents().reward(agent, -1.0f)); });
  EXPECT_EQ(choice([&] { EXPECT_OK(brain->agents().reward(agent, -1.0f)); }), first);
  EXPECT_EQ(choice([&] { scold(CreditKind::current); }), first);
  EXPECT_NE(choice([] {}), first);
  EXPECT_OK(brain->agents().set_goal(agent, 0));
  EXPECT_EQ(choice([] {}), first);
}

// Both teach the value of the choice; only praise also lowers the others.
TEST_F(Toy, PraisePushesRivalsDownAndARewardDoesNot) {
  BrainSpec spec = toy_spec();
  spec.exploration = 0;
  const auto highest_rival = [&](bool praise) {
    const std::shared_ptr<Brain> made = add(spec);
    EXPECT_TRUE(made);
    if (!made) return 0.0f;
    const std::uint32_t agent = add_agent(*made, 0, Mode::learning);
    float chosen = 0, highest = 0;
    for (int i = 0; i < 2; ++i) {
      pass([&] { EXPECT_OK(made->agents().observe(agent, observation_of(0, 0))); });
      pass();
      pass([&] {
        const auto answer = made->agents().act(agent);
        ASSERT_TRUE(answer.ok()) << answer.error().message;
        const std::uint32_t choice = (*answer)->choice.branches[0];
        chosen = (*answer)->values[choice];
        highest = -1e9f;
        for (std::uint32_t c = 0; c < kChoices; ++c)
          if (c != choice) highest = std::max(highest, (*answer)->values[c]);
        EXPECT_OK(praise ? made->agents().feedback(agent, {1.0f, 1.0f, CreditKind::current, now()})
                         : made->agents().reward(agent, 1.0f));
      });
      for (int passed = 0; i == 0 && passed < 600; ++passed) pass();
    }
    EXPECT_NEAR(chosen, 1.0f, 0.1f);
    return highest;
  };
  EXPECT_LT(highest_rival(true), -0.35f);
  EXPECT_GT(highest_rival(false), -0.25f);
}

TEST_F(Toy, WithLearningOffNothingChanges) {
  brain = add(toy_spec());
  ASSERT_TRUE(brain);
  const std::uint32_t agent[] = {add_agent(*brain, 0, Mode::learning)};
  ASSERT_OK(brain->set_learning(false));
  const Hash128 before = hash(*brain);
  live(*brain, agent, 30, true);
  EXPECT_EQ(hash(*brain), before);
  EXPECT_EQ(brain->stats().counters.minibatches, 0u);
  EXPECT_EQ(brain->stats().samples, 0u);
}

TEST_F(Toy, ABudgetOfZeroIsInferenceOnly) {
  open({0, 1000});
  brain = add(toy_spec());
  ASSERT_TRUE(brain);
  const std::uint32_t agent[] = {add_agent(*brain, 0, Mode::learning)};
  const Hash128 before = hash(*brain);
  live(*brain, agent, 10, true);
  EXPECT_EQ(hash(*brain), before);
  system->set_budget({500, 1000});
  for (int i = 0; i < 6; ++i) pass();
  EXPECT_NE(hash(*brain), before) << "feedback given meanwhile waited";
}

TEST_F(Toy, DemonstrationsTeachChoicesAndContinuousActions) {
  BrainSpec spec = toy_spec();
  spec.learner = LearnerKind::cloning;
  spec.goal_count = 1;
  spec.action = {{kChoices, 2}, 1};
  brain = add(spec);
  ASSERT_TRUE(brain);
  const std::uint32_t agent = add_agent(*brain, 0, Mode::record);
  const auto target = [](std::uint32_t thing) { return 0.5f * static_cast<float>(thing) - 0.75f; };
  for (std::uint32_t i = 0; i < 64; ++i) {
    pass([&] {
      const std::uint32_t thing = i % kThings, branches[] = {right_choice(thing, 1), thing / 2};
      const float continuous[] = {target(thing)};
      EXPECT_OK(brain->agents().observe(agent, observation_of(thing, i)));
      EXPECT_OK(brain->agents().act_by_heuristic(agent, branches, continuous));
    });
  }
  EXPECT_EQ(brain->stats().counters.demonstrations, 64u);
  for (int i = 0; i < 600; ++i) pass();
  EXPECT_OK(brain->agents().set_mode(agent, Mode::inference));
  for (std::uint32_t thing = 0; thing < kThings; ++thing) {
    pass([&] { EXPECT_OK(brain->agents().observe(agent, observation_of(thing, 1000 + thing))); });
    pass();
    pass([&] {
      const auto answer = brain->agents().act(agent);
      ASSERT_TRUE(answer.ok());
      EXPECT_EQ((*answer)->choice.branches[0], right_choice(thing, 1));
      EXPECT_EQ((*answer)->choice.branches[1], thing / 2);
      EXPECT_NEAR((*answer)->choice.continuous[0], target(thing), 0.1);
    });
  }
}

// Each brain of a kennel starts, acts and explores as a single brain with its seed, and learns for itself.
TEST_F(Toy, AKennelActsAsThatManySingleBrains) {
  constexpr std::uint32_t kPets = 4;
  std::vector<std::vector<std::uint32_t>> chosen(kPets);
  std::vector<std::vector<float>> values(kPets);
  const auto play = [&](Brain& of, std::span<const std::uint32_t> agents,
                        const std::function<void(std::size_t, const Answer&)>& keep) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      pass([&] {
        for (const std::uint32_t agent : agents)
          EXPECT_OK(of.agents().observe(agent, observation_of(i % kThings, i)));
      });
      pass();
      pass([&] {
        for (std::size_t s = 0; s < agents.size(); ++s) {
          const auto answer = of.agents().act(agents[s]);
          ASSERT_TRUE(answer.ok());
          keep(s, **answer);
        }
      });
    }
  };
  BrainSpec spec = toy_spec();
  spec.brain_count = kPets;
  brain = add(spec);
  ASSERT_TRUE(brain);
  std::vector<std::uint32_t> agents;
  for (std::uint32_t p = 0; p < kPets; ++p) agents.push_back(add_agent(*brain, p, Mode::learning));
  play(*brain, agents, [&](std::size_t p, const Answer& answer) {
    chosen[p].push_back(answer.choice.branches[0]);
    values[p].insert(values[p].end(), answer.values.begin(), answer.values.end());
  });
  EXPECT_NE(chosen[0], chosen[1]);
  for (std::uint32_t p = 0; p < kPets; ++p) {
    BrainSpec alone = toy_spec();
    alone.seed += p;
    const std::shared_ptr<Brain> single = add(alone);
    ASSERT_TRUE(single);
    const std::uint32_t agent[] = {add_agent(*single, 0, Mode::learning)};
    std::vector<std::uint32_t> own;
    std::vector<float> own_values;
    play(*single, agent, [&](std::size_t, const Answer& answer) {
      own.push_back(answer.choice.branches[0]);
      own_values.insert(own_values.end(), answer.values.begin(), answer.values.end());
    });
    EXPECT_EQ(own, chosen[p]) << "brain " << p;
    ASSERT_EQ(own_values.size(), values[p].size());
    for (std::size_t i = 0; i < own_values.size(); ++i) ASSERT_NEAR(own_values[i], values[p][i], 1e-5f);
    system->remove_brain(single);
  }
}

// Agents that observe in every frame share the program in turns. Each decides as it would alone. The program
// has the size of one turn.
TEST_F(Toy, ACrowdDecidesInTurns) {
  constexpr std::uint32_t kAgents = 5, kBrains = 2, kPeriod = 3;
  BrainSpec spec = toy_spec();
  spec.agents_per_brain = kAgents;
  spec.brain_count = kBrains;
  spec.action_latency_frames = 1;
  const auto play = [&](std::uint32_t period, std::uint32_t frames,
                        const std::function<void(std::uint32_t, std::size_t, const Answer&)>& see) {
    spec.decision_period_frames = period;
    const std::shared_ptr<Brain> crowd = add(spec);
    ASSERT_TRUE(crowd);
    std::vector<std::uint32_t> agents;
    for (std::uint32_t i = 0; i < kAgents * kBrains; ++i)
      agents.push_back(add_agent(*crowd, i / kAgents, Mode::inference));
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < frames; ++i) {
      pass([&] {
        for (std::size_t s = 0; s < agents.size(); ++s) {
          if (const auto answer = crowd->agents().act(agents[s]); answer.ok()) see(i, s, **answer);
          EXPECT_OK(crowd->agents().observe(agents[s],
                                            observation_of(static_cast<std::uint32_t>(s + i) % kThings, i)));
        }
      });
      const std::uint64_t decided = crowd->stats().counters.decisions - before;
      const std::uint32_t turn = i % period;
      EXPECT_EQ(decided, kBrains * ((kAgents - 1 - turn) / period + 1)) << "frame " << i;
      before += decided;
    }
    system->remove_brain(crowd);
  };
  // The values of every situation, from many agents that decide in every frame.
  std::vector<std::vector<std::vector<float>>> values(16, std::vector<std::vector<float>>(kAgents * kBrains));
  std::vector<std::vector<std::uint32_t>> choices(16, std::vector<std::uint32_t>(kAgents * kBrains));
  play(1, 14, [&](std::uint32_t i, std::size_t s, const Answer& answer) {
    values[i - 1][s] = answer.values;
    choices[i - 1][s] = answer.choice.branches[0];
  });
  std::uint32_t compared = 0;
  std::uint64_t first_frame = 0;
  play(kPeriod, 13, [&](std::uint32_t i, std::size_t s, const Answer& answer) {
    if (first_frame == 0) first_frame = frame - i;
    const auto asked = static_cast<std::uint32_t>(answer.requested_frame - first_frame);
    EXPECT_EQ(asked % kPeriod, s % kAgents % kPeriod);
    EXPECT_LE(i - asked, kPeriod) << "the last answer stands until the next";
    ASSERT_EQ(answer.values.size(), values[asked][s].size());
    for (std::size_t k = 0; k < answer.values.size(); ++k)
      EXPECT_NEAR(answer.values[k], values[asked][s][k], 1e-5f);
    EXPECT_EQ(answer.choice.branches[0], choices[asked][s]);
    ++compared;
  });
  EXPECT_GE(compared, kAgents * kBrains * (12u - kPeriod));
}

TEST_F(Toy, AKennelLearnsApart) {
  BrainSpec spec = toy_spec();
  spec.brain_count = 3;
  brain = add(spec);
  ASSERT_TRUE(brain);
  const std::uint32_t taught[] = {add_agent(*brain, 1, Mode::learning)},
                      other[] = {add_agent(*brain, 2, Mode::inference)};
  const double before = live(*brain, other, 40, false);
  live(*brain, taught, 200, true);
  EXPECT_OK(brain->agents().set_mode(taught[0], Mode::inference));
  EXPECT_GE(live(*brain, taught, 40, false), 0.95);
  moment_ = 0;
  EXPECT_EQ(live(*brain, other, 40, false), before) << "its neighbour learned, it did not";
}

TEST_F(Toy, SamplesBeyondTheQueueAreDroppedAndCounted) {
  brain = add(toy_spec());
  ASSERT_TRUE(brain);
  const std::uint32_t agent = add_agent(*brain, 0, Mode::learning);
  pass([&] {
    const auto seen = observation_of(0, 0);
    const std::uint32_t branches[] = {0};
    for (std::uint32_t i = 0; i < kWaitingSamples + 10; ++i)
      EXPECT_OK(brain->agents().demonstrate(agent, {seen, 0, branches, {}, 1.0f}));
  });
  for (int i = 0; i < 4; ++i) pass();
  EXPECT_EQ(brain->stats().lost.intake, 10u);
  EXPECT_EQ(brain->stats().samples, 3 * kRowsPerStep)
      << "one step per two frames takes three batches of rows";
}

// A learning rate that no network survives: the device skips the step that would write infinities, learning
// stops, and a restored snapshot continues.
TEST_F(Toy, NumbersThatAreNotFiniteStopLearningAndUndoSetsItGoing) {
  BrainSpec spec = toy_spec();
  spec.learning_rate = 1e6f;
  spec.max_gradient_norm = 0;
  spec.hidden_sizes = {16, 16, 16, 16};
  brain = add(spec);
  ASSERT_TRUE(brain);
  const std::uint32_t agent = add_agent(*brain, 0, Mode::learning);
  const auto snapshot = brain->state().snapshot();
  ASSERT_TRUE(snapshot.ok());
  pass();
  const Hash128 start = hash(*brain);
  const auto seen = observation_of(0, 0);
  const std::uint32_t branches[] = {0};
  pass([&] { EXPECT_OK(brain->agents().demonstrate(agent, {seen, 0, branches, {}, 1.0f})); });
  for (int i = 0; i < 200 && brain->stats().stopped_brains == 0; ++i) pass();
  EXPECT_EQ(brain->stats().stopped_brains, 1u);
  EXPECT_FALSE(std::isfinite(brain->stats().last_loss));
  ASSERT_EQ(messages.texts.size(), 1u);
  EXPECT_THAT(messages.texts[0], ::testing::HasSubstr("not finite"));
  messages.texts.clear();
  pass([&] { EXPECT_OK(brain->agents().observe(agent, seen)); });
  pass();
  pass([&] {
    const auto answer = brain->agents().act(agent);
    ASSERT_TRUE(answer.ok());
    EXPECT_LT((*answer)->choice.branches[0], kChoices) << "it still acts";
  });
  EXPECT_OK(brain->state().restore(*snapshot));
  EXPECT_EQ(brain->stats().stopped_brains, 0u);
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(hash(*brain), start);
}

TEST_F(Toy, AFrameAfterWarmupCompilesAllocatesAndWaitsForNothing) {
  brain = add(toy_spec());
  ASSERT_TRUE(brain);
  const std::uint32_t agent[] = {add_agent(*brain, 0, Mode::learning)};
  const std::uint64_t allocations = system->stats().allocations;
  live(*brain, agent, 50, true);
  pass([&] {
    EXPECT_TRUE(brain->state().snapshot().ok());
    EXPECT_OK(brain->state().save(::testing::TempDir() + "imprint-frame.brain"));
  });
  EXPECT_OK(saved(*brain));
  const AgentSystemStats stats = system->stats();
  EXPECT_EQ(stats.frame_compiles, 0u);
  EXPECT_EQ(stats.frame_allocations, 0u);
  EXPECT_EQ(stats.frame_waits, 0u);
  EXPECT_EQ(stats.allocations, allocations);
}

// As the pet: 28 observations, 6 cues, 10 actions.
TEST_F(AgentSystemTest, APetsMinibatchIsAtMostTwelveDispatches) {
  if (!system->context().vulkan()) GTEST_SKIP() << "the CPU runs one kernel at a time";
  BrainSpec spec;
  spec.observation.count = 28;
  spec.action.branch_sizes = {10};
  spec.goal_count = 6;
  spec.learner = LearnerKind::feedback;
  brain = add(spec);
  ASSERT_TRUE(brain);
  EXPECT_LE(brain->stats().learn_dispatches, 12u);
  EXPECT_LE(brain->stats().infer_dispatches, 5u);
}

}  // namespace
}  // namespace imprint::agent::test

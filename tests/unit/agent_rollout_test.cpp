// Updates from rollouts against plain loops in double precision: rows, advantages, weights afterwards.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;

BrainSpec ppo_spec(std::uint32_t brains) {
  BrainSpec spec = pet_spec(brains);
  spec.learner = LearnerKind::ppo;
  spec.rollout_steps = 8;
  spec.batch_size = 8;
  spec.epochs = 1;
  spec.discount = 0.75f;
  spec.advantage_decay = 0.5f;
  spec.entropy_coefficient = 0.25f;
  return spec;
}

struct Done {
  Numbers observation, next;
  int goal = 0, next_goal = 0, choice = 0;
  std::vector<int> allowed;
  double reward = 0;
  bool begins = false, terminated = false;
};

Done done(std::uint32_t i) {
  Done made;
  for (std::uint32_t k = 0; k < 3; ++k) made.observation.push_back(draw(3 * i + k, 2));
  made.terminated = i % 5 == 3;
  for (std::uint32_t k = 0; k < 3; ++k) made.next.push_back(made.terminated ? 0 : draw(3 * i + k, 4));
  made.goal = static_cast<int>(i % 2);
  made.next_goal = static_cast<int>(i / 2 % 2);
  made.choice = static_cast<int>(i % 4);
  made.allowed = {1, 1, 1, 1};
  made.allowed[(i + 1) % 4] = 0;
  made.reward = draw(i, 5);
  made.begins = i % 5 == 4 || i == 0;
  return made;
}

void standardise(Numbers& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0, square = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) square += (value - mean) * (value - mean) / (count - 1);
  for (double& value : values) value = (value - mean) / (std::sqrt(square) + 1e-8);
}

class RolloutTest : public ::testing::Test {
 protected:
  void build(const BrainSpec& wanted) {
    spec = wanted;
    network = std::make_unique<Network>(Network::create(spec).value());
    auto described = describe_learning(spec, *network);
    ASSERT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    const std::size_t rows = std::size_t{spec.brain_count} * spec.rollout_steps;
    state["rows"].assign(rows, -1);
    state["filled"].assign(spec.brain_count, 0);
    state["samples"].assign(rows * learner_of(spec).layout(spec).width, 0);
  }

  // A network with a cell gets no log-probabilities, and states that are not 0.
  void give(std::uint32_t brain, std::uint32_t first) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    for (std::uint32_t k = 0; k < spec.rollout_steps; ++k) {
      const Done step = done(first + k);
      double* columns =
          state["samples"].data() + (std::size_t{brain} * spec.rollout_steps + k) * layout.width;
      std::copy(step.observation.begin(), step.observation.end(), columns + layout.observation);
      columns[layout.goal] = step.goal;
      columns[layout.branches] = step.choice;
      columns[layout.reward] = step.reward;
      columns[layout.log_probability] = spec.has_cell() ? 0 : log_probability(brain, step);
      for (std::uint32_t i = 0; i < spec.state_count(); ++i) columns[layout.state + i] = draw(first + k, i);
      columns[layout.begins] = step.begins ? 1 : 0;
      std::copy(step.allowed.begin(), step.allowed.end(), columns + layout.allowed);
      columns[layout.continues] = step.terminated ? 0 : 1;
      std::copy(step.next.begin(), step.next.end(), columns + layout.next_observation);
      columns[layout.next_goal] = step.next_goal;
    }
    state["filled"][brain] = spec.rollout_steps;
  }

  // The log-probability of the step's action by the first weights.
  double log_probability(std::uint32_t brain, const Done& step) const {
    const Numbers logits = forward(spec, weights_of(*network, brain, spec.brain_count), step.observation);
    const auto logit = [&](std::size_t i) { return logits[static_cast<std::size_t>(step.goal) * 4 + i]; };
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i)
      if (step.allowed[i]) sum += std::exp(logit(i));
    return logit(static_cast<std::size_t>(step.choice)) - std::log(sum);
  }

  // The parts of an update.
  enum Part : std::size_t { begin_part, prepare_part, minibatch_part, publish_part };
  void run(std::size_t part) {
    for (std::uint32_t turn = 0; turn < graph.sequence.parts[part].repeat; ++turn)
      reference::run_updates(graph.sequence.parts[part].description.updates, state);
  }

  void run_all() {
    ASSERT_EQ(graph.sequence.parts.size(), publish_part + 1u);
    for (std::size_t part = 0; part <= publish_part; ++part) run(part);
  }
  void prepare() {
    run(begin_part);
    run(prepare_part);
  }

  // Each row's advantage, standardised in its minibatch. One epoch.
  Numbers advantages(std::uint32_t brain) const {
    Numbers by_row(spec.rollout_steps);
    for (std::size_t place = 0; place < spec.rollout_steps; ++place) {
      const std::size_t at = brain * spec.rollout_steps + place;
      by_row[static_cast<std::size_t>(state.at("order")[at])] = state.at("advantage")[at];
    }
    return by_row;
  }

  const Variable& kept(const std::string& name) const {
    for (const StateVariable& entry : graph.state)
      if (entry.name == name) return entry.variable;
    throw std::runtime_error(name);
  }
  Weights critic(std::uint32_t brain) const {
    Weights weights;
    for (const nn::Parameter& parameter : network->parameters()) {
      const Numbers all = reference::content(kept("critic." + parameter.name), state);
      const std::size_t size = all.size() / spec.brain_count;
      weights.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(brain * size),
                           all.begin() + static_cast<std::ptrdiff_t>((brain + 1) * size));
    }
    return weights;
  }

  void expect_down_the_loss(bool old);

  BrainSpec spec;
  std::unique_ptr<Network> network;
  LearnGraph graph;
  reference::Bindings state;
};

TEST_F(RolloutTest, AdvantagesAreThoseOfTheCritic) {
  build(ppo_spec(2));
  give(0, 0);
  give(1, 20);
  const Weights critics[] = {critic(0), critic(1)};
  prepare();
  for (std::uint32_t brain = 0; brain < 2; ++brain) {
    double advantage = 0;
    Numbers expected(8);
    for (std::uint32_t k = 8; k-- > 0;) {
      const Done step = done(20 * brain + k);
      const auto value = [&](const Numbers& seen, int goal) {
        return forward(spec, critics[brain], seen)[static_cast<std::size_t>(goal)];
      };
      const double here = value(step.observation, step.goal);
      const double later = step.terminated ? 0 : double{spec.discount} * value(step.next, step.next_goal);
      const bool goes_on = k < 7 && !done(20 * brain + k + 1).begins;
      advantage = step.reward + later - here +
                  (goes_on ? double{spec.discount} * double{spec.advantage_decay} * advantage : 0);
      expected[k] = advantage;
      EXPECT_NEAR(state.at("value_target")[brain * 8 + k], advantage + here, 1e-9) << k;
    }
    standardise(expected);
    const Numbers found = advantages(brain);
    for (std::uint32_t k = 0; k < 8; ++k) EXPECT_NEAR(found[k], expected[k], 1e-6) << k;
  }
}

// Steps of older weights: their log-probabilities are another policy's.
TEST_F(RolloutTest, AnActorsOldStepsAreCorrectedByVtrace) {
  BrainSpec wanted = ppo_spec(2);
  wanted.receives_experience = true;
  build(wanted);
  const SampleLayout layout = learner_of(spec).layout(spec);
  const auto lag = [](std::uint32_t row) { return draw(row, 7); };
  const Weights critics[] = {critic(0), critic(1)};
  for (std::uint32_t brain = 0; brain < 2; ++brain) {
    give(brain, 20 * brain);
    for (std::uint32_t k = 0; k < 8; ++k)
      state["samples"][(std::size_t{brain} * 8 + k) * layout.width + layout.log_probability] -=
          lag(8 * brain + k);
  }
  prepare();
  for (std::uint32_t brain = 0; brain < 2; ++brain) {
    const auto value = [&](const Numbers& seen, int goal) {
      return forward(spec, critics[brain], seen)[static_cast<std::size_t>(goal)];
    };
    const double discount = double{spec.discount};
    double correction = 0;  // of the next row's value
    Numbers expected(8);
    for (std::uint32_t k = 8; k-- > 0;) {
      const Done step = done(20 * brain + k);
      const double here = value(step.observation, step.goal);
      const double later = step.terminated ? 0 : value(step.next, step.next_goal);
      const bool goes_on = k < 7 && !done(20 * brain + k + 1).begins;
      if (!goes_on) correction = 0;
      const double ratio = std::min(1.0, std::exp(lag(8 * brain + k)));
      expected[k] = ratio * (step.reward + discount * (later + correction) - here);
      correction = ratio * (step.reward + discount * later - here) +
                   discount * double{spec.advantage_decay} * ratio * correction;
      EXPECT_NEAR(state.at("value_target")[brain * 8 + k], here + correction, 1e-9) << k;
      EXPECT_NEAR(state.at("acting_log_probability")[brain * 8 + k], log_probability(brain, step), 1e-9) << k;
    }
    standardise(expected);
    const Numbers found = advantages(brain);
    for (std::uint32_t k = 0; k < 8; ++k) EXPECT_NEAR(found[k], expected[k], 1e-6) << k;
  }
}

// Without lag and decay V-trace is the sum of discounted rewards.
TEST_F(RolloutTest, ACellLearnsFromAnActorsNewStepsAsFromItsOwn) {
  using Other = RolloutTest_ACellLearnsFromAnActorsNewStepsAsFromItsOwn_Test;
  BrainSpec wanted = ppo_spec(2);
  wanted.cell = Cell::gru;
  wanted.cell_size = 4;
  wanted.sequence_steps = 4;
  wanted.advantage_decay = 1;
  const auto begin = [&](Other& test, bool receives, const Numbers& log_probabilities) {
    wanted.receives_experience = receives;
    test.build(wanted);
    for (const std::uint32_t brain : {0u, 1u}) test.give(brain, 20 * brain);
    const SampleLayout layout = learner_of(wanted).layout(wanted);
    for (std::size_t row = 0; row < log_probabilities.size(); ++row)
      test.state["samples"][row * layout.width + layout.log_probability] = log_probabilities[row];
  };
  Other first, received, own;
  begin(first, true, {});
  first.prepare();
  const Numbers acting = first.state.at("acting_log_probability");
  begin(received, true, acting);
  begin(own, false, acting);
  received.run_all();
  own.run_all();
  for (const nn::Parameter& parameter : own.network->parameters()) {
    const Numbers &found = received.state.at("network." + parameter.name),
                  &expected = own.state.at("network." + parameter.name);
    EXPECT_NE(expected, reference::initial_values(parameter.variable)) << parameter.name;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-9) << parameter.name << " " << i;
  }
}

TEST_F(RolloutTest, APolicyWaitsForARewardThatDiffersOrATerminatedEpisode) {
  build(ppo_spec(4));
  const SampleLayout layout = learner_of(spec).layout(spec);
  for (std::uint32_t brain = 0; brain < 4; ++brain) {
    give(brain, 20 * brain);
    for (std::uint32_t k = 0; k < 8; ++k) {
      double* columns = state["samples"].data() + (std::size_t{brain} * 8 + k) * layout.width;
      columns[layout.reward] = brain == 3 ? 1 : brain == 1 && k == 6 ? -0.5 : -1;
      columns[layout.continues] = brain == 2 && k == 7 ? 0 : 1;
    }
  }
  prepare();
  const auto all_zero = [](const Numbers& values) {
    return std::ranges::all_of(values, [](double value) { return value == 0; });
  };
  EXPECT_TRUE(all_zero(advantages(0))) << "its advantages are the critic's errors";
  EXPECT_FALSE(all_zero(advantages(1)));
  EXPECT_FALSE(all_zero(advantages(2)));
  EXPECT_FALSE(all_zero(advantages(3))) << "each step earns something: going on is good";
  const Numbers& targets = state.at("value_target");
  EXPECT_FALSE(all_zero(Numbers(targets.begin(), targets.begin() + 8)));
}

// One epoch of one minibatch, so that the order does not matter.
TEST_F(RolloutTest, AKennelEqualsSingleBrainsAndBrainsWithoutRolloutStay) {
  build(ppo_spec(3));
  give(0, 0);
  give(2, 20);
  const Numbers before = reference::initial_values(network->parameters()[0].variable);
  run_all();
  for (const std::uint32_t p : {0u, 2u}) {
    RolloutTest_AKennelEqualsSingleBrainsAndBrainsWithoutRolloutStay_Test single;
    BrainSpec alone = ppo_spec(1);
    alone.seed += p;
    single.build(alone);
    single.give(0, p == 0 ? 0 : 20);
    single.run_all();
    for (const nn::Parameter& parameter : network->parameters()) {
      const Numbers &all = state.at("network." + parameter.name),
                    &own = single.state.at("network." + parameter.name);
      for (std::size_t i = 0; i < own.size(); ++i)
        ASSERT_NEAR(all[p * own.size() + i], own[i], 1e-7) << parameter.name << " of brain " << p;
    }
    EXPECT_NEAR(reference::evaluate_all(graph.sequence.parts[publish_part].description.outputs, state)[0][p],
                reference::evaluate_all(single.graph.sequence.parts[publish_part].description.outputs,
                                        single.state)[0][0],
                1e-9);
  }
  const Numbers& after = state.at("network.0.weight");
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool learns = i / (after.size() / 3) != 1;
    if (learns)
      EXPECT_NE(after[i], before[i]);
    else
      EXPECT_EQ(after[i], before[i]);
  }
}

// The first minibatch's ratio is 1, so the loss is -A log pi plus the value's error minus the entropy.
TEST_F(RolloutTest, AnUpdateGoesDownTheLoss) { expect_down_the_loss(false); }
// The same of an actor's old steps: the ratio is to the acting policy, not to the one that made them.
TEST_F(RolloutTest, AnUpdateFromOldStepsGoesDownTheLoss) { expect_down_the_loss(true); }

void RolloutTest::expect_down_the_loss(bool old) {
  BrainSpec wanted = ppo_spec(1);
  wanted.max_gradient_norm = 0;
  wanted.receives_experience = old;
  build(wanted);
  give(0, 3);
  const SampleLayout layout = learner_of(spec).layout(spec);
  for (std::uint32_t k = 0; old && k < 8; ++k)
    state["samples"][k * layout.width + layout.log_probability] -= draw(k, 7);
  Weights actor = weights_of(*network, 0, 1), value = critic(0);
  prepare();
  const Numbers advantage = advantages(0);
  const auto loss = [&] {
    double total = 0;
    for (std::uint32_t k = 0; k < 8; ++k) {
      const Done step = done(3 + k);
      const Numbers logits = forward(spec, actor, step.observation);
      const auto logit = [&](std::size_t i) { return logits[static_cast<std::size_t>(step.goal) * 4 + i]; };
      double sum = 0, entropy = 0;
      for (std::size_t i = 0; i < 4; ++i)
        if (step.allowed[i]) sum += std::exp(logit(i));
      for (std::size_t i = 0; i < 4; ++i)
        if (step.allowed[i]) entropy -= std::exp(logit(i)) / sum * (logit(i) - std::log(sum));
      const double ratio =
          std::exp(logit(static_cast<std::size_t>(step.choice)) - std::log(sum) - log_probability(0, step));
      const double error = forward(spec, value, step.observation)[static_cast<std::size_t>(step.goal)] -
                           state.at("value_target")[k];
      total += (-ratio * advantage[k] + 0.5 * error * error - double{spec.entropy_coefficient} * entropy) / 8;
    }
    return total;
  };
  const auto slopes = [&](Weights& of) {
    Weights found = of;
    for (std::size_t p = 0; p < of.size(); ++p)
      for (std::size_t i = 0; i < of[p].size(); ++i) {
        const double centre = of[p][i];
        of[p][i] = centre + 1e-5;
        const double above = loss();
        of[p][i] = centre - 1e-5;
        found[p][i] = (above - loss()) / 2e-5;
        of[p][i] = centre;
      }
    return found;
  };
  const Weights of_actor = slopes(actor), of_critic = slopes(value);
  run(minibatch_part);
  run(publish_part);
  for (std::size_t p = 0; p < actor.size(); ++p) {
    const std::string& name = network->parameters()[p].name;
    for (const auto& [prefix, expected] : {std::pair{"adam.first_moment.actor.", &of_actor[p]},
                                           std::pair{"adam.first_moment.critic.", &of_critic[p]}}) {
      const Numbers found = reference::content(kept(prefix + name), state);
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], 0.1 * (*expected)[i], 1e-7) << prefix << name << " " << i;
    }
  }
}

// Outside an update the weights take observations as they are; inside, the learned copy takes normalised ones
// and computes the same.
TEST_F(RolloutTest, NormalisedObservationsAreFoldedIntoTheWeights) {
  BrainSpec wanted = ppo_spec(2);
  wanted.normalise_observations = true;
  wanted.observation.scale = {1, 2, 0.5f};
  build(wanted);
  give(0, 0);
  give(1, 20);
  run_all();  // takes the first weights as they are
  EXPECT_EQ(reference::content(kept("fresh"), state), (Numbers{0, 0}));
  give(0, 8);
  give(1, 40);
  const auto actor = [&](const char* prefix, std::uint32_t brain) {
    Weights weights;
    for (const nn::Parameter& parameter : network->parameters()) {
      const Numbers& all = state.at(prefix + ("." + parameter.name));
      const std::size_t size = all.size() / spec.brain_count;
      weights.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(brain * size),
                           all.begin() + static_cast<std::ptrdiff_t>((brain + 1) * size));
    }
    return weights;
  };
  BrainSpec unscaled = spec;
  unscaled.observation.scale.clear();
  const auto expect_equal = [&] {
    for (std::uint32_t brain = 0; brain < 2; ++brain)
      for (std::uint32_t k = 0; k < 8; ++k) {
        const Numbers seen = done(40 * brain + k).observation;
        Numbers normalised = seen;
        for (std::size_t i = 0; i < 3; ++i) {
          const double deviation = std::sqrt(state.at("moments.variance")[brain * 3 + i]);
          normalised[i] =
              (seen[i] * double{spec.observation.scale[i]} - state.at("moments.mean")[brain * 3 + i]) /
              std::max(deviation, 0.05);
        }
        const Numbers plain = forward(spec, actor("network", brain), seen),
                      inside = forward(unscaled, actor("learned", brain), normalised);
        for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], inside[i], 1e-6);
      }
  };
  prepare();
  expect_equal();
  run(minibatch_part);
  run(publish_part);
  expect_equal();
}

TEST_F(RolloutTest, AnUpdateStopsBeyondTheDivergence) {
  BrainSpec wanted = ppo_spec(2);
  wanted.epochs = 4;
  wanted.max_divergence = 1e-12f;
  build(wanted);
  give(0, 0);
  run_all();
  EXPECT_EQ(reference::content(kept("adam.step"), state)[0], 1)
      << "the first minibatch moves nothing before it";
}

TEST_F(RolloutTest, TheRateFallsToZeroInAsManyDecisions) {
  BrainSpec wanted = ppo_spec(2);
  wanted.rate_decisions = 3 * wanted.rollout_steps;
  build(wanted);
  give(0, 0);
  std::vector<double> moved;
  for (int update = 0; update < 5; ++update) {
    const Numbers before = reference::content(kept("critic.0.bias"), state);
    run_all();
    EXPECT_EQ(reference::content(kept("updates"), state), (Numbers{update + 1.0, 0}))
        << "the second brain has no rollout";
    double most = 0;
    const Numbers after = reference::content(kept("critic.0.bias"), state);
    for (std::size_t i = 0; i < after.size(); ++i) most = std::max(most, std::abs(after[i] - before[i]));
    moved.push_back(most);
  }
  EXPECT_GT(moved[0], 0);
  EXPECT_GT(moved[2], 0);
  EXPECT_EQ(moved[3], 0);
  EXPECT_EQ(moved[4], 0);
}

TEST_F(RolloutTest, RewardsAreDividedByTheDeviationOfTheirDiscountedSum) {
  BrainSpec wanted = ppo_spec(1);
  wanted.normalise_rewards = true;
  build(wanted);
  give(0, 0);
  const Weights value = critic(0);
  prepare();
  Numbers returned;
  double mean = 0, square = 0;
  for (std::uint32_t k = 0; k < 8; ++k) {
    const bool goes_on = k > 0 && !done(k).begins;
    returned.push_back(done(k).reward + (goes_on ? double{spec.discount} * returned.back() : 0));
  }
  for (const double r : returned) mean += r / 8;
  for (const double r : returned) square += (r - mean) * (r - mean) / 8;
  const Done last = done(7);
  const double later =
      last.terminated
          ? 0
          : double{spec.discount} * forward(spec, value, last.next)[static_cast<std::size_t>(last.next_goal)];
  EXPECT_NEAR(state.at("value_target")[7], last.reward / std::sqrt(square) + later, 2e-3);
}

TEST(TakeRollouts, AreWholeAndAgentByAgent) {
  BrainSpec spec = ppo_spec(2);
  spec.agents_per_brain = 2;
  spec.rollout_steps = spec.batch_size = 4;
  ReplayState replay = ReplayState::empty(spec);
  const SampleLayout layout = learner_of(spec).layout(spec);
  const auto push = [&](std::uint32_t brain, std::uint32_t agent, float reward, float begins) {
    const std::span<float> row = replay.waiting.push(brain, {agent, 0});
    std::ranges::fill(row, 0.0f);
    row[layout.reward] = reward;
    row[layout.begins] = begins;
  };
  for (const float reward : {1.0f, 2.0f, 3.0f}) push(0, 0, reward, 0);
  push(1, 3, 10, 0);
  push(1, 2, 20, 0);
  push(1, 3, 11, 0);
  push(1, 2, 21, 0);
  push(1, 2, 22, 0);
  std::vector<float> values(2 * 4 * layout.width);
  std::vector<std::int32_t> rows(8);
  take_rollouts(spec, replay, {values, rows, {}, {}});
  EXPECT_EQ(rows, (std::vector<std::int32_t>{-1, -1, -1, -1, 4, 5, 6, 7}));
  const auto column = [&](std::uint32_t first) {
    std::vector<float> found;
    for (std::size_t k = 4; k < 8; ++k) found.push_back(values[k * layout.width + first]);
    return found;
  };
  EXPECT_EQ(column(layout.reward), (std::vector<float>{20, 21, 10, 11}));
  EXPECT_EQ(column(layout.begins), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(replay.waiting.size(0), 3u) << "collection continues";
  EXPECT_EQ(replay.waiting.size(1), 1u) << "the rest is for the next rollout";
}

TEST(TakeRollouts, OfCopiesWaitForTheNewestAndLoseNoOrderToThoseThatAreGone) {
  BrainSpec spec = ppo_spec(1);
  spec.rollout_steps = spec.batch_size = 4;
  spec.agents_per_brain = 1;
  ReplayState replay = ReplayState::empty(spec);
  CopyLedger ledger(spec);
  const auto push = [&](std::uint64_t number) {
    std::ranges::fill(replay.waiting.push(0, {0, number, number + 1}), static_cast<float>(number));
  };
  for (const std::uint64_t number : {1, 2, 3, 4}) push(number);
  for (std::uint64_t number = 1; number <= 4; ++number) ledger.capture(0, number);
  EXPECT_FALSE(has_rollout(spec, replay, 0, ledger)) << "the fifth is not copied yet";
  EXPECT_EQ(replay.waiting.size(0), 4u);
  ledger.capture(0, 6);  // another episode began in the frame of the fifth
  EXPECT_FALSE(has_rollout(spec, replay, 0, ledger));
  EXPECT_EQ(replay.waiting.size(0), 0u) << "what follows a gap would be taken for its continuation";
  EXPECT_EQ(replay.waiting.dropped(), 4u);
  for (const std::uint64_t number : {6, 7, 8, 9}) push(number);
  for (std::uint64_t number = 7; number <= 10; ++number) ledger.capture(0, number);
  ASSERT_TRUE(has_rollout(spec, replay, 0, ledger));
  std::vector<float> values(std::size_t{4} * learner_of(spec).layout(spec).width);
  std::vector<std::int32_t> rows(4), copies(4), next(4);
  EXPECT_EQ(take_rollouts(spec, replay, {values, rows, copies, next, &ledger}), 4u);
  for (std::uint64_t k = 0; k < 4; ++k) {
    EXPECT_EQ(copies[k], copy_row(spec, {0, 6 + k}));
    EXPECT_EQ(next[k], copy_row(spec, {0, 7 + k}));
  }
  for (std::uint64_t number = 11; number <= 10 + kept_copies(spec); ++number) ledger.capture(0, number);
  EXPECT_EQ(ledger.find({0, 10}), CopyLedger::Found::gone) << "overwritten soon";
  EXPECT_EQ(ledger.find({0, 11, 12}), CopyLedger::Found::there);
}

}  // namespace
}  // namespace imprint::agent

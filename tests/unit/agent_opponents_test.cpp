// Self-play: the pool's entries, draws and ratings, and decisions by an entry's weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/learn/samples/opponents.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/validate.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent::opponents_test {
namespace {

using namespace oracle;
using ::testing::HasSubstr;

BrainSpec pool_spec(std::uint32_t brains) {
  BrainSpec spec = pet_spec(brains);
  spec.learner = LearnerKind::ppo;
  spec.pool_size = 3;
  spec.pool_period = 100;
  spec.rollout_steps = spec.batch_size = 8;
  return spec;
}

TEST(Opponents, TheOldestEntryGoes) {
  Opponents pool(pool_spec(2));
  EXPECT_EQ(pool.draw(1, 7), kNewestOpponent) << "the pool is empty";
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pool.keep(1, 10 * i), -1) << "no request";
    pool.request(1);
    EXPECT_TRUE(pool.wanted());
    EXPECT_EQ(pool.keep(1, 10 * i), static_cast<std::int32_t>(3 + i % 3)) << "rows of the second brain";
  }
  EXPECT_EQ(pool.count(1), 3u);
  EXPECT_EQ(pool.count(0), 0u);
  EXPECT_EQ(pool.at(1, 0).decisions, 30u);
  EXPECT_EQ(pool.at(1, 1).decisions, 10u);
}

TEST(Opponents, AreKeptByThePeriod) {
  Opponents pool(pool_spec(1));
  for (const std::uint64_t decisions : {0, 99, 100, 150, 199, 200, 450}) {
    pool.request_when_due(decisions);
    const bool due = decisions == 100 || decisions == 200 || decisions == 450;
    EXPECT_EQ(pool.keep(0, decisions) >= 0, due) << decisions;
  }
}

// Draws are independent of the number of brains' draws before, spread alike, and go on after a file.
TEST(Opponents, DrawsAreFairAndComeBack) {
  Opponents pool(pool_spec(1));
  for (int i = 0; i < 3; ++i) {
    pool.request(0);
    pool.keep(0, 0);
  }
  int newest = 0, of[3] = {};
  for (int i = 0; i < 6000; ++i) {
    const std::uint32_t drawn = pool.draw(0, 11);
    drawn == kNewestOpponent ? ++newest : ++of[drawn];
  }
  EXPECT_NEAR(newest, 3000, 200);
  for (const int count : of) EXPECT_NEAR(count, 1000, 120);
  Opponents other(pool_spec(1));
  EXPECT_EQ(other.set(pool.ratings(), pool.numbers()), nullptr);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(other.draw(0, 11), pool.draw(0, 11));
  std::vector<std::int64_t> numbers = pool.numbers();
  numbers[1] = 4;
  EXPECT_NE(other.set(pool.ratings(), numbers), nullptr);
  numbers = pool.numbers();
  numbers[5] = -1;
  EXPECT_NE(other.set(pool.ratings(), numbers), nullptr);
}

TEST(Opponents, RatingsAreElos) {
  Opponents pool(pool_spec(1));
  Opponent& own = pool.of(0, kNewestWeights);
  Opponent strong;
  strong.rating = 1600;
  Opponents::rate(own, strong, 1);
  // Expected 1 / 11 of a match, so a win is worth 16 * 10 / 11 points.
  EXPECT_NEAR(own.rating, 1200 + 16 * 10.0 / 11, 1e-3);
  EXPECT_NEAR(strong.rating, 1600 - 16 * 10.0 / 11, 1e-3);
  Opponents::rate(own, own, 0);
  EXPECT_NEAR(own.rating, 1200 + 16 * 10.0 / 11, 1e-3) << "against itself";
  pool.request(0);
  pool.keep(0, 5);
  EXPECT_EQ(pool.at(0, 0).rating, own.rating) << "an entry begins as the weights that it holds";
  EXPECT_EQ(pool.at(0, 0).matches, 0u);
}

// Each agent acts by the weights that it was given, newest or old.
TEST(Opponents, AgentsActByTheirEntries) {
  BrainSpec spec = pool_spec(2);
  spec.agents_per_brain = 3;
  const Network network = Network::create(spec).value();
  BrainSpec entries = spec;
  entries.brain_count = 6;
  entries.seed += 100;
  const Network pool = Network::create(entries, "pool", 1.0).value();
  const InferGraph graph = describe_inference(spec, network, {}, &pool);
  reference::Bindings bindings;
  for (std::uint32_t i = 0; i < 2 * 3 * 3; ++i) bindings["observation"].push_back(draw(i, 0));
  bindings["goal"] = {0, 1, 1, 1, 0, 0};
  bindings["noise"].assign(2 * 3 * 4, 0);
  bindings["mask"].assign(2 * 3 * 4, 1);
  bindings["opponent"] = {-1, 0, 2, 1, -1, 1};
  const auto outputs = reference::evaluate_all(graph.description.outputs, bindings);
  for (std::uint32_t agent = 0; agent < 6; ++agent) {
    const auto entry = static_cast<int>(bindings["opponent"][agent]);
    const std::uint32_t brain = agent / 3;
    const Weights weights = entry < 0 ? weights_of(network, brain, 2)
                                      : weights_of(pool, brain * 3 + static_cast<std::uint32_t>(entry), 6);
    const Numbers heads = forward(spec, weights,
                                  Numbers(bindings["observation"].begin() + agent * 3,
                                          bindings["observation"].begin() + agent * 3 + 3));
    for (std::size_t choice = 0; choice < 4; ++choice)
      EXPECT_NEAR(outputs[static_cast<std::size_t>(graph.values)][agent * 4 + choice],
                  heads[static_cast<std::size_t>(bindings["goal"][agent]) * 4 + choice], 1e-9)
          << "agent " << agent;
  }
}

TEST(Opponents, AStepKeepsTheWeightsFromBeforeIt) {
  BrainSpec spec = pool_spec(2);
  const Network network = Network::create(spec).value();
  BrainSpec entries = spec;
  entries.brain_count = 6;
  const Network pool = Network::create(entries, "pool").value();
  const LearnGraph graph = describe_learning(spec, network, {}, &pool).value();
  ASSERT_EQ(graph.kept, 3u);
  reference::Bindings state;
  state["kept"] = {-1, 4};
  const Variable& weight = network.parameters()[0].variable;
  const Numbers own = reference::initial_values(weight);
  const Numbers before = reference::initial_values(pool.parameters()[0].variable);
  for (const Update& update : graph.sequence.parts.back().description.updates)
    if (update.target.state() == pool.parameters()[0].variable.state())
      reference::run_updates(std::span(&update, 1), state);
  const Numbers after = reference::content(pool.parameters()[0].variable, state);
  const std::size_t size = own.size() / 2;
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(after[i], i / size == 4 ? own[size + i % size] : before[i]);
}

TEST(Opponents, WhatDoesNotSuitIsRefused) {
  BrainSpec spec = pool_spec(1);
  EXPECT_TRUE(checked(spec).ok());
  spec.learner = LearnerKind::cloning;
  EXPECT_THAT(checked(spec).error().message,
              HasSubstr("found the cloning learner, expected dqn, sac or ppo"));
  spec = pool_spec(1);
  spec.cell = Cell::lstm;
  EXPECT_THAT(checked(spec).error().message, HasSubstr("found cell lstm, expected none"));
  spec = pool_spec(1);
  spec.pool_size = 65;
  EXPECT_THAT(checked(spec).error().message, HasSubstr("pool_size: found 65, expected 1 to 64"));
  spec = pool_spec(1);
  spec.newest_share = 1.5f;
  EXPECT_THAT(checked(spec).error().message, HasSubstr("newest_share: found 1.5"));
}

}  // namespace
}  // namespace imprint::agent::opponents_test

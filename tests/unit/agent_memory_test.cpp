// Networks with memory: stacks of observations, and cells against plain loops in double precision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compute/graph/gradients/autodiff.h"
#include "compute/program/run.h"
#include "compute/program/runtime.h"
#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/keep/schema.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/spec/network.h"
#include "plugin/agent/validate.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- stacks ----

std::vector<float> seen_by(AgentSlot& slot, std::uint64_t frame, float number) {
  slot.request(frame, {{number, -number}});
  return slot.take(frame).choice->observation;
}

AgentSlot stacking_slot(std::uint32_t stack) {
  AgentSlot slot({{2}, 0}, 1);
  slot.stack_observations(2, stack);
  slot.occupy();
  return slot;
}

TEST(Stack, HoldsTheNewestDecidedObservationsAndBeginsAgainWithAnEpisode) {
  AgentSlot slot = stacking_slot(3);
  EXPECT_THAT(seen_by(slot, 1, 1), ElementsAre(0, 0, 0, 0, 1, -1));
  slot.request(2, {{7, 7}});  // replaced before it was decided from
  EXPECT_THAT(seen_by(slot, 2, 2), ElementsAre(0, 0, 1, -1, 2, -2));
  EXPECT_THAT(seen_by(slot, 3, 3), ElementsAre(1, -1, 2, -2, 3, -3));
  EXPECT_THAT(seen_by(slot, 4, 4), ElementsAre(2, -2, 3, -3, 4, -4));
  slot.request(5, {{5, -5}});
  EXPECT_THAT(slot.last_seen()->observation, ElementsAre(3, -3, 4, -4, 5, -5)) << "the end of an episode";
  slot.end_episode();
  EXPECT_THAT(seen_by(slot, 6, 6), ElementsAre(0, 0, 0, 0, 6, -6));
}

TEST(Stack, HoldsWhatTheGameDecidedFromToo) {
  AgentSlot slot = stacking_slot(2);
  slot.set_mode(Mode::heuristic);
  slot.request(1, {{1, 2}});
  const std::uint32_t branches[] = {1};
  ASSERT_TRUE(slot.act_by_heuristic(0, branches, {}));
  EXPECT_THAT(slot.last_answer().choice.observation, ElementsAre(0, 0, 1, 2));
  slot.request(2, {{3, 4}});
  ASSERT_TRUE(slot.act_by_heuristic(0, branches, {}));
  EXPECT_THAT(slot.last_answer().choice.observation, ElementsAre(1, 2, 3, 4));
}

TEST(Stack, OfCopiesNamesTheOneBefore) {
  AgentSlot slot = stacking_slot(2);
  slot.request_in_place(1, 10);
  EXPECT_EQ(slot.take_pending_copy().before, 0u);
  slot.take(1);
  slot.request_in_place(2, 12);
  EXPECT_EQ(slot.pending_copy()->before, 1u);
  slot.take_pending_copy();
  slot.take(2);
  slot.request(3, {{5, 6}});  // numbers are not stacked on copies
  EXPECT_THAT(slot.take(3).choice->observation, ElementsAre(0, 0, 5, 6));
  slot.request_in_place(4, 12);
  EXPECT_EQ(slot.take_pending_copy().before, 0u) << "nor copies on numbers";
  slot.take(4);
  slot.end_episode();
  slot.request_in_place(5, 12);
  EXPECT_EQ(slot.pending_copy()->before, 0u);
}

// ---- cells ----

BrainSpec recurrent_spec(Cell cell) {
  BrainSpec spec = pet_spec(2);
  spec.learner = LearnerKind::ppo;
  spec.hidden_sizes = {5};
  spec.cell = cell;
  spec.cell_size = 4;
  spec.sequence_steps = 3;
  spec.rollout_steps = spec.batch_size = 6;
  return spec;
}

constexpr std::int64_t kRows = 6;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// x W + b, with W [in][out].
Numbers linear(const Numbers& x, const Numbers& weight, const Numbers& bias) {
  Numbers y = bias;
  for (std::size_t in = 0; in < x.size(); ++in)
    for (std::size_t out = 0; out < y.size(); ++out) y[out] += x[in] * weight[in * y.size() + out];
  return y;
}

// The state after one step: the outputs, then an LSTM's cells. weights: those of the cell.
Numbers stepped(const BrainSpec& spec, const Weights& weights, std::size_t first, const Numbers& x,
                const Numbers& state) {
  const std::size_t size = spec.cell_size;
  const Numbers hidden(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size));
  const Numbers given = linear(x, weights[first], weights[first + 1]),
                kept = linear(hidden, weights[first + 2], weights[first + 3]);
  Numbers after(state.size());
  for (std::size_t i = 0; i < size; ++i) {
    const auto both = [&](std::size_t gate) { return given[gate * size + i] + kept[gate * size + i]; };
    if (spec.cell == Cell::gru) {
      const double update = sigmoid_of(both(1)),
                   fresh = std::tanh(given[2 * size + i] + sigmoid_of(both(0)) * kept[2 * size + i]);
      after[i] = (1 - update) * fresh + update * hidden[i];
    } else {
      after[size + i] = sigmoid_of(both(1)) * state[size + i] + sigmoid_of(both(0)) * std::tanh(both(2));
      after[i] = sigmoid_of(both(3)) * std::tanh(after[size + i]);
    }
  }
  return after;
}

struct Rows {
  std::vector<float> x, states, restarts;  // [P, rows, ...]
};

Rows rows_of(const BrainSpec& spec) {
  Rows rows;
  const std::uint32_t count = 2 * kRows;
  for (std::uint32_t i = 0; i < count * 3; ++i) rows.x.push_back(static_cast<float>(draw(i, 11)));
  for (std::uint32_t i = 0; i < count * spec.state_count(); ++i)
    rows.states.push_back(static_cast<float>(draw(i, 12)));
  for (std::uint32_t i = 0; i < count; ++i) rows.restarts.push_back(i % kRows == 4 ? 1.0f : 0.0f);
  return rows;
}

// The outputs of one brain's cell for its rows, in double precision.
Numbers features_of(const BrainSpec& spec, const Weights& weights, const Rows& rows, std::size_t brain) {
  Numbers features, state(spec.state_count());
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::size_t at = brain * kRows + row;
    if (row % spec.sequence_steps == 0 || rows.restarts[at] > 0.5f)
      for (std::size_t i = 0; i < state.size(); ++i) state[i] = rows.states[at * state.size() + i];
    Numbers x;
    for (std::size_t i = 0; i < 3; ++i) x.push_back(rows.x[at * 3 + i]);
    x = linear(x, weights[0], weights[1]);
    for (double& value : x) value = std::tanh(value);
    state = stepped(spec, weights, 2, x, state);
    features.insert(features.end(), state.begin(),
                    state.begin() + static_cast<std::ptrdiff_t>(spec.cell_size));
  }
  return features;
}

double factor(std::size_t i) { return draw(static_cast<std::uint32_t>(i), 13); }

double weighed(const Numbers& features, std::size_t first) {
  double sum = 0;
  for (std::size_t i = 0; i < features.size(); ++i) sum += features[i] * factor(first + i);
  return sum;
}

class CellTest : public ::testing::TestWithParam<Cell> {};

TEST_P(CellTest, RunsSequencesAndTheirGradientsGoBackToTheirBegin) {
  const BrainSpec spec = recurrent_spec(GetParam());
  const Network network = Network::create(spec).value();
  const Rows rows = rows_of(spec);
  const auto tensor = [](const std::vector<float>& values, Shape shape) {
    return Tensor::from(std::span<const float>(values), std::move(shape));
  };
  const RecurrentCell::Output ran = network.run(
      tensor(rows.x, {2, kRows, 3}),
      {tensor(rows.states, {2, kRows, spec.state_count()}), tensor(rows.restarts, {2, kRows}), 3});
  const std::size_t count = 2 * kRows * spec.cell_size;
  std::vector<float> factors;
  for (std::size_t i = 0; i < count; ++i) factors.push_back(static_cast<float>(factor(i)));
  const Tensor loss = sum(ran.features * tensor(factors, {2, kRows, spec.cell_size}));
  const nn::Parameters trained = network.parameters();
  const Tensor recurrent = trained.find("cell.weight_hh")->value();
  const Tensor by[] = {recurrent};
  const auto found = gradients(loss, by);
  ASSERT_TRUE(found.ok()) << found.error().message;

  const Weights first[] = {weights_of(network, 0, 2), weights_of(network, 1, 2)};  // running takes them
  const auto runtime = Runtime::create_on_cpu();
  Session session(*runtime);
  const auto features = session.evaluate(ran.features), gradient = session.evaluate((*found)[0]);
  ASSERT_TRUE(features.ok()) << features.error().message;
  ASSERT_TRUE(gradient.ok()) << gradient.error().message;
  for (std::size_t p = 0; p < 2; ++p) {
    Weights weights = first[p];
    const Numbers expected = features_of(spec, weights, rows, p);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(features->floats[p * expected.size() + i], expected[i], 1e-5) << "brain " << p << ", " << i;
    Numbers& weight = weights[4];
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double held = weight[i], step = 1e-5;
      weight[i] = held + step;
      const double above = weighed(features_of(spec, weights, rows, p), p * expected.size());
      weight[i] = held - step;
      const double below = weighed(features_of(spec, weights, rows, p), p * expected.size());
      weight[i] = held;
      EXPECT_NEAR(gradient->floats[p * weight.size() + i], (above - below) / (2 * step), 1e-4)
          << "brain " << p << ", weight " << i;
    }
  }
}

TEST_P(CellTest, CountsItsParameters) {
  const BrainSpec spec = recurrent_spec(GetParam());
  const Network network = Network::create(spec).value();
  EXPECT_EQ(spec.parameter_count(), static_cast<std::uint64_t>(network.parameters().element_count()));
}

INSTANTIATE_TEST_SUITE_P(Cells, CellTest, ::testing::Values(Cell::gru, Cell::lstm),
                         [](const auto& one) { return std::string(cell_name(one.param)); });

// ---- descriptions ----

TEST(Memory, RefusesWhatCannotLearn) {
  const auto refusal = [](auto change) {
    BrainSpec spec = recurrent_spec(Cell::gru);
    change(spec);
    const Result<> status = validate(spec);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(refusal([](BrainSpec&) {}), "ok");
  EXPECT_EQ(refusal([](BrainSpec& s) { s.learner = LearnerKind::none; }), "ok");
  for (const LearnerKind learner : {LearnerKind::feedback, LearnerKind::dqn, LearnerKind::coach})
    EXPECT_THAT(refusal([=](BrainSpec& s) { s.learner = learner; }),
                HasSubstr("learner does not learn through time. Use the PPO learner, or stack."));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.sequence_steps = 4; }),
              HasSubstr("batch_size: found 6, expected a multiple of sequence_steps, 4. Set it to 8"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.sequence_steps = 0; }), HasSubstr("sequence_steps: found 0"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.sequence_steps = 257; }), HasSubstr("expected 1 to 256"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.cell_size = 0; }), HasSubstr("cell_size: found 0"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.cell_size = 5000; }), HasSubstr("expected 1 to 4096"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation.stack = 0; }), HasSubstr("stack: found 0"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation.stack = 65; }), HasSubstr("expected 1 to 64"));
  EXPECT_THAT(refusal([](BrainSpec& s) { s.observation = {.count = 1u << 19, .stack = 4}; }),
              HasSubstr("observation_count * stack: found 524288 * 4"));
}

TEST(Memory, ChosenMinibatchesAreWholeSequences) {
  for (const std::uint32_t agents : {1u, 3u, 8u, 64u, 100u})
    for (const std::uint32_t steps : {1u, 7u, 20u, 32u, 256u}) {
      BrainSpec spec = recurrent_spec(Cell::lstm);
      spec.agents_per_brain = agents;
      spec.sequence_steps = steps;
      spec.rollout_steps = spec.batch_size = spec.learn_period_frames = 0;
      const BrainSpec chosen = completed(spec);
      EXPECT_TRUE(validate(chosen).ok())
          << agents << " agents, sequences of " << steps << ": " << validate(chosen).error().message;
      EXPECT_GE(chosen.batch_size, std::min(4 * steps, chosen.rollout_steps));
    }
}

TEST(Memory, IsPartOfTheSchema) {
  const BrainSpec base = recurrent_spec(Cell::gru);
  const auto changes = [&](auto change) {
    BrainSpec spec = base;
    change(spec);
    return network_hash(spec) != network_hash(base) && schema_hash(spec) != schema_hash(base);
  };
  EXPECT_TRUE(changes([](BrainSpec& s) { s.observation.stack = 2; }));
  EXPECT_TRUE(changes([](BrainSpec& s) { s.cell = Cell::lstm; }));
  EXPECT_TRUE(changes([](BrainSpec& s) { s.cell = Cell::none; }));
  EXPECT_TRUE(changes([](BrainSpec& s) { s.cell_size = 3; }));
  EXPECT_FALSE(changes([](BrainSpec& s) { s.sequence_steps = 2; }));
  BrainSpec stacked = base;
  stacked.observation.stack = 2;
  EXPECT_THAT(schema_text(stacked), HasSubstr("3 observations stacked 2, 2 goals"));
  EXPECT_THAT(schema_text(stacked), HasSubstr("network 6-5-gru4-8 tanh"));
}

}  // namespace
}  // namespace imprint::agent

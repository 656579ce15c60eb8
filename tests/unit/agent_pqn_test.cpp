// The update of PQN against plain loops in double precision: lambda returns, scale, weights afterwards.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;

constexpr std::uint32_t kPqnSteps = 8;

BrainSpec pqn_spec(std::uint32_t brains, bool normalise_rewards) {
  BrainSpec spec = pet_spec(brains);
  spec.learner = LearnerKind::pqn;
  spec.rollout_steps = spec.batch_size = kPqnSteps;  // one minibatch, so that the order does not matter
  spec.epochs = 1;
  spec.discount = 0.75f;
  spec.trace_decay = 0.5f;
  spec.max_gradient_norm = 0;
  spec.normalise_rewards = normalise_rewards;
  return spec;
}

struct PqnRow {
  Numbers observation, next;
  int goal = 0, next_goal = 0, choice = 0;
  std::vector<int> allowed;  // in the next state
  double reward = 0;
  bool begins = false, terminated = false;
};

// The episode of row 3 terminates; that of row 5 is cut off, so that its next state has a value.
PqnRow pqn_row(std::uint32_t brain, std::uint32_t k) {
  const std::uint32_t i = 20 * brain + k;
  PqnRow row;
  row.terminated = k == 3;
  row.begins = k == 0 || k == 4 || k == 6;
  for (std::uint32_t n = 0; n < 3; ++n) {
    row.observation.push_back(draw(3 * i + n, 2));
    row.next.push_back(row.terminated ? 0 : draw(3 * i + n, 4));
  }
  row.goal = static_cast<int>(i % 2);
  row.next_goal = static_cast<int>(i / 2 % 2);
  row.choice = static_cast<int>(i % 4);
  row.allowed.assign(4, row.terminated ? 0 : 1);
  row.allowed[(i + 1) % 4] = 0;
  row.reward = 40 * draw(i, 5);
  return row;
}

class PqnTest : public ::testing::Test {
 protected:
  enum Part : std::size_t { begin_part, prepare_part, minibatch_part, publish_part };

  void build(const BrainSpec& wanted) {
    spec = wanted;
    network = std::make_unique<Network>(Network::create(spec).value());
    auto described = describe_learning(spec, *network);
    ASSERT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    ASSERT_EQ(graph.sequence.parts.size(), publish_part + 1u);
    const std::size_t rows = std::size_t{spec.brain_count} * kPqnSteps;
    state["rows"].assign(rows, -1);
    state["filled"].assign(spec.brain_count, 0);
    state["samples"].assign(rows * learner_of(spec).layout(spec).width, 0);
  }

  void give(std::uint32_t brain) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    for (std::uint32_t k = 0; k < kPqnSteps; ++k) {
      const PqnRow row = pqn_row(brain, k);
      double* columns = state["samples"].data() + (std::size_t{brain} * kPqnSteps + k) * layout.width;
      std::copy(row.observation.begin(), row.observation.end(), columns + layout.observation);
      columns[layout.goal] = row.goal;
      columns[layout.branches] = row.choice;
      columns[layout.reward] = row.reward;
      columns[layout.begins] = row.begins ? 1 : 0;
      std::copy(row.allowed.begin(), row.allowed.end(), columns + layout.allowed);
      columns[layout.continues] = row.terminated ? 0 : 1;
      std::copy(row.next.begin(), row.next.end(), columns + layout.next_observation);
      columns[layout.next_goal] = row.next_goal;
    }
    state["filled"][brain] = kPqnSteps;
  }

  void run(std::size_t part) {
    reference::run_updates(graph.sequence.parts[part].description.updates, state);
  }
  void run_all() {
    for (std::size_t part = 0; part <= publish_part; ++part) run(part);
  }

  double rated(const Weights& weights, const Numbers& seen, int goal, std::size_t choice) const {
    return forward(spec, weights, seen)[static_cast<std::size_t>(goal) * 4 + choice];
  }
  static bool follows(std::uint32_t brain, std::uint32_t k) {
    return k + 1 < kPqnSteps && !pqn_row(brain, k + 1).begins;
  }
  // By the weights from before the update.
  Numbers lambda_returns(std::uint32_t brain) const {
    const Weights weights = weights_of(*network, brain, spec.brain_count);
    Numbers found(kPqnSteps);
    for (std::uint32_t k = kPqnSteps; k-- > 0;) {
      const PqnRow row = pqn_row(brain, k);
      double best = -std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < 4; ++c)
        if (row.allowed[c]) best = std::max(best, rated(weights, row.next, row.next_goal, c));
      const double later = row.terminated ? 0 : best;
      const double lambda = double{spec.trace_decay};
      found[k] = row.reward + double{spec.discount} *
                                  (follows(brain, k) ? (1 - lambda) * later + lambda * found[k + 1] : later);
    }
    return found;
  }
  // The deviation of the discounted sums of rewards so far.
  double deviation(std::uint32_t brain) const {
    double sum = 0, mean = 0, square = 0;
    Numbers sums;
    for (std::uint32_t k = 0; k < kPqnSteps; ++k) {
      const PqnRow row = pqn_row(brain, k);
      sum = row.reward + (row.begins ? 0 : double{spec.discount} * sum);
      sums.push_back(sum);
      mean += sum / kPqnSteps;
    }
    for (const double one : sums) square += (one - mean) * (one - mean) / kPqnSteps;
    return std::sqrt(square);
  }

  // Half the mean squared error of the learned copy, whose targets are scaled.
  double loss(std::uint32_t brain, const Weights& learned, double scale) const {
    const Numbers targets = lambda_returns(brain);
    double total = 0;
    for (std::uint32_t k = 0; k < kPqnSteps; ++k) {
      const PqnRow row = pqn_row(brain, k);
      const double distance =
          rated(learned, row.observation, row.goal, static_cast<std::size_t>(row.choice)) -
          targets[k] / scale;
      total += distance * distance / 2 / kPqnSteps;
    }
    return total;
  }

  Numbers weights_after(std::uint32_t brain, std::size_t parameter) const {
    const Numbers& all = state.at("network." + network->parameters()[parameter].name);
    const auto size = static_cast<std::ptrdiff_t>(all.size() / spec.brain_count);
    return {all.begin() + brain * size, all.begin() + (brain + 1) * size};
  }

  void expect_step_down_the_loss(bool normalise_rewards);

  BrainSpec spec;
  std::unique_ptr<Network> network;
  LearnGraph graph;
  reference::Bindings state;
};

TEST_F(PqnTest, TargetsAreLambdaReturnsOfWhatIsAllowedNext) {
  build(pqn_spec(2, false));
  for (const std::uint32_t brain : {0u, 1u}) give(brain);
  run(begin_part);
  run(prepare_part);
  for (const std::uint32_t brain : {0u, 1u}) {
    const Numbers expected = lambda_returns(brain);
    for (std::size_t k = 0; k < kPqnSteps; ++k)
      EXPECT_NEAR(state.at("target")[brain * kPqnSteps + k], expected[k], 1e-6) << brain << " " << k;
  }
}

// The first step of RAdam is plain descent.
void PqnTest::expect_step_down_the_loss(bool normalise_rewards) {
  build(pqn_spec(2, normalise_rewards));
  for (const std::uint32_t brain : {0u, 1u}) give(brain);
  run_all();
  const Numbers losses =
      reference::evaluate_all(graph.sequence.parts[publish_part].description.outputs, state)[0];
  for (const std::uint32_t brain : {0u, 1u}) {
    double scale = 1;
    if (normalise_rewards) {
      scale = state.at("scale")[brain];
      EXPECT_NEAR(scale, deviation(brain), 1e-3 * scale);
    }
    Weights learned = weights_of(*network, brain, 2);
    for (std::size_t last = learned.size() - 2; last < learned.size(); ++last)
      for (double& weight : learned[last]) weight /= scale;
    EXPECT_NEAR(losses[brain], loss(brain, learned, scale), 1e-6);
    for (std::size_t p = 0; p < learned.size(); ++p) {
      const Numbers found = weights_after(brain, p);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double centre = learned[p][i];
        learned[p][i] = centre + 1e-5;
        const double above = loss(brain, learned, scale);
        learned[p][i] = centre - 1e-5;
        const double slope = (above - loss(brain, learned, scale)) / 2e-5;
        learned[p][i] = centre;
        const double stepped = centre - double{spec.learning_rate} * slope;
        ASSERT_NEAR(found[i], p + 2 < learned.size() ? stepped : stepped * scale, 1e-6) << p << " " << i;
      }
    }
  }
}
TEST_F(PqnTest, AnUpdateGoesDownTheSquaredError) { expect_step_down_the_loss(false); }
TEST_F(PqnTest, WithRewardsOfOneScaleValuesStayInTheGamesUnits) { expect_step_down_the_loss(true); }

TEST_F(PqnTest, BrainsWithoutARolloutOrWithABadOneKeepTheirBits) {
  build(pqn_spec(3, true));
  for (const std::uint32_t brain : {0u, 1u}) give(brain);
  const SampleLayout layout = learner_of(spec).layout(spec);
  state["samples"][std::size_t{kPqnSteps} * layout.width + layout.observation] =
      std::numeric_limits<double>::quiet_NaN();
  run_all();
  for (std::size_t p = 0; p < network->parameters().size(); ++p) {
    EXPECT_NE(weights_after(0, p), weights_of(*network, 0, 3)[p]);
    for (const std::uint32_t brain : {1u, 2u})
      EXPECT_EQ(weights_after(brain, p), weights_of(*network, brain, 3)[p]) << brain;
  }
  const Numbers losses =
      reference::evaluate_all(graph.sequence.parts[publish_part].description.outputs, state)[0];
  EXPECT_TRUE(std::isfinite(losses[0]));
  EXPECT_FALSE(std::isfinite(losses[1])) << "so that the host stops this brain and says so";
}

TEST_F(PqnTest, ItsRateFalls) {
  BrainSpec wanted = pqn_spec(1, false);
  wanted.rate_half_life = 1;  // minibatch, one of which is an update
  wanted.rate_decisions = 4 * kPqnSteps;
  build(wanted);
  state["published.updates"] = {2};
  give(0);
  const Weights before = weights_of(*network, 0, 1);
  run_all();
  const Numbers slow = weights_after(0, 0);
  EXPECT_EQ(state.at("published.updates"), (Numbers{3}));
  wanted.rate_half_life = wanted.rate_decisions = 0;
  state.clear();
  build(wanted);
  give(0);
  run_all();
  const Numbers whole = weights_after(0, 0);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(slow[i] - before[0][i], (whole[i] - before[0][i]) / 3 / 2, 1e-9) << i;
}

TEST(PqnSpec, FollowsFromTheNumberOfAgents) {
  BrainSpec spec = pet_spec(1);
  spec.learner = LearnerKind::pqn;
  spec.rollout_steps = spec.batch_size = spec.learn_period_frames = spec.epsilon_decisions = 0;
  spec.agents_per_brain = 64;
  const BrainSpec crowd = completed(spec);
  EXPECT_EQ(crowd.rollout_steps, 2048u);
  EXPECT_EQ(crowd.batch_size, 256u);
  EXPECT_EQ(crowd.epsilon_decisions, 8 * 2048u);
  spec.epsilon_decisions = 1;
  EXPECT_EQ(completed(spec).epsilon_decisions, 1u);
}

}  // namespace
}  // namespace imprint::agent

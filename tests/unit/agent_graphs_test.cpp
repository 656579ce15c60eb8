// A brain's programs against plain loops in double precision: choices, losses, and the state after a step.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/updates.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;
using reference::Bindings;

// ---- inference ----

TEST(InferGraph, ChoosesTheBestAllowedOfTheAgentsGoal) {
  BrainSpec spec = pet_spec(2);
  spec.agents_per_brain = 3;
  const auto network = Network::create(spec);
  ASSERT_TRUE(network.ok());
  const InferGraph graph = describe_inference(spec, *network);
  Bindings bindings;
  for (std::uint32_t i = 0; i < 2 * 3 * 3; ++i) bindings["observation"].push_back(draw(i, 0));
  bindings["goal"] = {0, 1, 1, 1, 0, 0};
  for (std::uint32_t i = 0; i < 2 * 3 * 4; ++i) bindings["noise"].push_back(0.5 * draw(i, 1));
  // The first brain heard 12 words of the second goal's third choice, and no others.
  bindings[network->heard().name()].assign(2 * 2 * 4, 0);
  bindings[network->heard().name()][4 + 2] = 12;
  bindings["mask"] = {1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1};
  const auto outputs = reference::evaluate_all(graph.description.outputs, bindings);
  for (std::uint32_t agent = 0; agent < 6; ++agent) {
    const Numbers observation(bindings["observation"].begin() + agent * 3,
                              bindings["observation"].begin() + agent * 3 + 3);
    const Numbers heads = forward(spec, weights_of(*network, agent / 3, 2), observation);
    int best = -1;
    double best_rating = -1e300;
    for (int choice = 0; choice < 4; ++choice) {
      const double value = heads[static_cast<std::size_t>(bindings["goal"][agent] * 4 + choice)];
      EXPECT_NEAR(outputs[static_cast<std::size_t>(graph.values)][agent * 4 + choice], value, 1e-12);
      const double doubt = agent >= 3 || bindings["goal"][agent] == 0 ? 1 : choice == 2 ? 0.75 : 1.5;
      const double rating = value + doubt * bindings["noise"][agent * 4 + choice];
      if (bindings["mask"][agent * 4 + choice] == 0 || rating <= best_rating) continue;
      best = choice;
      best_rating = rating;
    }
    EXPECT_EQ(outputs[static_cast<std::size_t>(graph.branches[0])][agent], best) << "agent " << agent;
  }
}

TEST(InferGraph, BranchesAndContinuousActionsFollowEachOther) {
  BrainSpec spec = pet_spec(1);
  spec.learner = LearnerKind::cloning;
  spec.goal_count = 1;
  spec.action = {{2, 3}, 2};
  spec.observation.scale.clear();
  const auto network = Network::create(spec);
  ASSERT_TRUE(network.ok());
  const InferGraph graph = describe_inference(spec, *network);
  EXPECT_EQ(graph.goal, -1);
  Bindings bindings{{"observation", {30, -20, 10}}, {"mask", {1, 1, 1, 1, 1}}, {"noise", {0, 0, 0, 0, 0}}};
  const auto outputs = reference::evaluate_all(graph.description.outputs, bindings);
  const Numbers values = forward(spec, weights_of(*network, 0, 1), bindings["observation"]);
  ASSERT_EQ(graph.branches.size(), 2u);
  EXPECT_EQ(outputs[static_cast<std::size_t>(graph.branches[0])][0], values[1] > values[0] ? 1 : 0);
  const auto best = std::max_element(values.begin() + 2, values.begin() + 5) - (values.begin() + 2);
  EXPECT_EQ(outputs[static_cast<std::size_t>(graph.branches[1])][0], best);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(outputs[static_cast<std::size_t>(graph.continuous)][i], std::clamp(values[5 + i], -1.0, 1.0),
                1e-12);
}

// ---- learning ----

struct Sample {
  Numbers observation;
  int goal = 0;
  std::vector<int> choices;
  Numbers continuous;
  double target = 0, weight = 1;
  LabelSource source = LabelSource::feedback;
  bool continues = true;  // dqn: the reward is the target, and the next observation is:
  Numbers next;
  int next_goal = 0;
  std::vector<int> allowed;
};

// The chance that the sample's choice is the right one.
double chance_of(const BrainSpec& spec, const Weights& weights, const Sample& sample) {
  const Numbers heads = forward(spec, weights, sample.observation);
  const auto power = [&](int choice) {
    return std::exp(4 * heads[static_cast<std::size_t>(sample.goal * 4 + choice)]);
  };
  return power(sample.choices[0]) / (power(0) + power(1) + power(2) + power(3));
}

// Rivals are pushed by the chance under the first weights.
auto feedback_loss(const Weights& first, double wrong = 0.1f) {
  return [first, wrong](const BrainSpec& spec, const Weights& weights, const Sample& sample) {
    const Numbers heads = forward(spec, weights, sample.observation);
    double error = 0, rivals = 0;
    for (int choice = 0; choice < 4; ++choice) {
      const double value = heads[static_cast<std::size_t>(sample.goal * 4 + choice)];
      if (choice == sample.choices[0])
        error = std::pow(value - sample.target, 2);
      else
        rivals += std::pow(std::max(0.0, value + spec.margin), 2);
    }
    if (sample.source == LabelSource::reward) return sample.weight * error;
    const bool shown = sample.source == LabelSource::demonstration;
    const double errs = shown ? double{0.01f} : wrong, chance = chance_of(spec, weights, sample);
    const double praised = errs + (1 - 2 * errs) * chance;
    const double told = std::abs(sample.target) * std::log(sample.target > 0 ? praised : 1 - praised);
    const double sure = shown ? 1 : chance_of(spec, first, sample);
    const double push = sample.target > 0 ? double{spec.margin_weight} * sure * rivals : 0;
    return sample.weight * (error + push - double{0.3f} * told);
  };
}

double cloning_loss(const BrainSpec& spec, const Weights& weights, const Sample& sample) {
  const Numbers heads = forward(spec, weights, sample.observation);
  const std::size_t first = static_cast<std::size_t>(sample.goal) * spec.action.output_count();
  double loss = 0;
  std::size_t at = first;
  for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b) {
    double sum = 0;
    for (std::size_t i = 0; i < spec.action.branch_sizes[b]; ++i) sum += std::exp(heads[at + i]);
    loss += std::log(sum) - heads[at + static_cast<std::size_t>(sample.choices[b])];
    at += spec.action.branch_sizes[b];
  }
  for (std::size_t i = 0; i < spec.action.continuous_count; ++i)
    loss += std::pow(heads[at + i] - sample.continuous[i], 2);
  return sample.weight * loss;
}

// By the target network's weights.
auto dqn_loss(const Weights& target, double least = -1e9, double most = 1e9) {
  return [=, &target](const BrainSpec& spec, const Weights& weights, const Sample& sample) {
    const auto best = [&](const Numbers& heads) {
      int found = -1;
      for (int choice = 0; choice < 4; ++choice) {
        const auto value = [&](int i) { return heads[static_cast<std::size_t>(sample.next_goal * 4 + i)]; };
        if (sample.allowed[static_cast<std::size_t>(choice)] && (found < 0 || value(choice) > value(found)))
          found = choice;
      }
      return static_cast<std::size_t>(sample.next_goal * 4 + found);
    };
    double wanted = sample.target;
    if (sample.continues) {  // after a step, or after the discounted rewards of n_step steps
      const Numbers rated = forward(spec, target, sample.next);
      wanted += std::pow(double{spec.discount}, spec.n_step) *
                rated[best(spec.double_estimate ? forward(spec, weights, sample.next) : rated)];
    }
    wanted = std::clamp(wanted, least, most);
    const double error =
        std::abs(forward(spec, weights,
                         sample.observation)[static_cast<std::size_t>(sample.goal * 4 + sample.choices[0])] -
                 wanted);
    if (spec.squared_loss) return error * error / 2;
    return error <= 1 ? error * error / 2 : error - 0.5;
  };
}

using Loss = std::function<double(const BrainSpec&, const Weights&, const Sample&)>;

// One step of one brain as defined in the learner's header, gradients by central differences.
struct Expected {
  double loss = 0;
  Weights weights, first, second;
};

Expected step(const BrainSpec& spec, Weights weights, const std::vector<Sample>& batch,
              const Loss& sample_loss, double shrink = 0, double shrink_last = 0) {
  const auto loss_of = [&](const Weights& w) {
    double sum = 0;
    for (const Sample& sample : batch) sum += sample_loss(spec, w, sample);
    return sum / static_cast<double>(batch.size());
  };
  Expected expected;
  expected.loss = loss_of(weights);
  Weights gradient = weights;
  double squares = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      constexpr double h = 1e-5;
      const double centre = weights[p][i];
      weights[p][i] = centre + h;
      const double above = loss_of(weights);
      weights[p][i] = centre - h;
      const double below = loss_of(weights);
      weights[p][i] = centre;
      gradient[p][i] =
          (above - below) / (2 * h) + 2 * (p + 2 < weights.size() ? shrink : shrink_last) * centre;
      squares += gradient[p][i] * gradient[p][i];
    }
  }
  const double scale = std::min(1.0, double{spec.max_gradient_norm} / (std::sqrt(squares) + 1e-6));
  expected.weights = expected.first = expected.second = weights;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      const double g = gradient[p][i] * scale;
      expected.first[p][i] = 0.1 * g;
      expected.second[p][i] = 0.001 * g * g;
      expected.weights[p][i] -= double{spec.learning_rate} / 0.1 * expected.first[p][i] /
                                (std::sqrt(expected.second[p][i] / 0.001) + 1e-8);
    }
  }
  return expected;
}

class LearnGraphTest : public ::testing::Test {
 protected:
  void build(const BrainSpec& wanted) {
    spec = wanted;
    auto made = Network::create(spec);
    ASSERT_TRUE(made.ok());
    network = std::make_unique<Network>(*made);
    auto described = describe_learning(spec, *network);
    ASSERT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    const SampleLayout layout = learner_of(spec).layout(spec);
    replay.assign(std::size_t{spec.brain_count} * spec.replay_capacity * layout.width, 0);
    bindings["rows"].assign(std::size_t{spec.brain_count} * rows_per_step(spec), -1);
    bindings["samples"].assign(bindings["rows"].size() * layout.width, 0);
    for (const char* number : {"filled", "next row"}) bindings[number].assign(spec.brain_count, 0);
    // Three of four samples were words, and half of those of each goal, which began with one word more.
    bindings["told"].assign(spec.brain_count, 6);
    bindings["taken"].assign(spec.brain_count, 8);
    bindings["told.outputs"].assign(std::size_t{spec.brain_count} * 2 * 4, 2);
    bindings["taken.outputs"].assign(std::size_t{spec.brain_count} * 2 * 4, 4);
  }

  void remember(std::uint32_t brain, std::uint32_t row, const Sample& sample) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    double* columns = replay.data() + (std::size_t{brain} * spec.replay_capacity + row) * layout.width;
    std::copy(sample.observation.begin(), sample.observation.end(), columns + layout.observation);
    columns[layout.goal] = sample.goal;
    for (std::size_t b = 0; b < sample.choices.size(); ++b) columns[layout.branches + b] = sample.choices[b];
    std::copy(sample.continuous.begin(), sample.continuous.end(), columns + layout.continuous);
    if (layout.weight) columns[layout.weight] = sample.weight;
    if (layout.target) columns[layout.target] = sample.target;
    if (layout.source) columns[layout.source] = static_cast<double>(sample.source);
    if (layout.reward) columns[layout.reward] = sample.target;
    if (layout.next_observation) {
      columns[layout.continues] = sample.continues ? std::pow(double{spec.discount}, spec.n_step - 1.0) : 0;
      std::copy(sample.next.begin(), sample.next.end(), columns + layout.next_observation);
      columns[layout.next_goal] = sample.next_goal;
      if (layout.allowed) std::copy(sample.allowed.begin(), sample.allowed.end(), columns + layout.allowed);
    }
    stored[{brain, row}] = sample;
    bindings["filled"][brain] = std::max(bindings["filled"][brain], row + 1.0);
  }

  // The samples that the device will draw for a brain.
  std::vector<Sample> minibatch(std::uint32_t brain) const {
    std::vector<Sample> batch;
    for (std::uint32_t i = 0; i < spec.batch_size; ++i) {
      const double uniform =
          philox_uniform(brain * spec.batch_size + i, 0, 0, static_cast<std::uint32_t>(spec.seed), 0);
      batch.push_back(stored.at({brain, static_cast<std::uint32_t>(uniform * bindings.at("filled")[brain])}));
    }
    return batch;
  }

  // The content of each variable after a run, by state name; and the losses.
  std::map<std::string, Numbers> run() {
    bindings["replay"] = replay;
    std::vector<Tensor> wanted{graph.description.outputs[LearnGraph::kLoss]};
    std::vector<std::string> names{"loss"};
    std::vector<StateVariable> state = network->state();
    state.insert(state.end(), graph.state.begin(), graph.state.end());
    for (const Update& update : graph.description.updates) {
      if (update.by_rows) continue;
      for (const StateVariable& entry : state)
        if (entry.variable.state() == update.target.state()) names.push_back(entry.name);
      wanted.push_back(update.value);
    }
    EXPECT_EQ(names.size(), wanted.size()) << "every updated variable is part of the saved state";
    const auto values = reference::evaluate_all(wanted, bindings);
    std::map<std::string, Numbers> results;
    for (std::size_t i = 0; i < names.size(); ++i) results[names[i]] = values[i];
    return results;
  }

  void expect_step(std::uint32_t brain, const std::map<std::string, Numbers>& results, const Loss& loss) {
    double shrink = 0;
    if (spec.learner == LearnerKind::feedback)
      shrink = 0.5625 * (4 / (bindings.at("filled")[brain] + 300) + double{0.0135f});
    const Expected expected = step(spec, weights_of(*network, brain, spec.brain_count), minibatch(brain),
                                   loss, 0.75 * shrink, 0.6 * shrink);
    EXPECT_NEAR(results.at("loss")[brain], expected.loss, 1e-9);
    std::size_t p = 0;
    for (const nn::Parameter& parameter : network->parameters()) {
      const std::size_t size = expected.weights[p].size();
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t at = brain * size + i;
        ASSERT_NEAR(results.at("adam.first_moment." + parameter.name)[at], expected.first[p][i], 1e-8)
            << parameter.name << " " << i;
        ASSERT_NEAR(results.at("adam.second_moment." + parameter.name)[at], expected.second[p][i], 1e-8);
        // Adam's first step is nearly the gradient's sign. For tiny gradients, rounding decides the sign.
        const double tolerance =
            std::abs(expected.first[p][i]) > 1e-6 ? 2e-6 : 2 * double{spec.learning_rate};
        ASSERT_NEAR(results.at("network." + parameter.name)[at], expected.weights[p][i], tolerance)
            << parameter.name << " " << i;
      }
      ++p;
    }
    EXPECT_EQ(results.at("adam.step")[brain], 1);
  }

  void expect_untouched(std::uint32_t brain, const std::map<std::string, Numbers>& results) {
    const Weights weights = weights_of(*network, brain, spec.brain_count);
    std::size_t p = 0;
    for (const nn::Parameter& parameter : network->parameters()) {
      for (std::size_t i = 0; i < weights[p].size(); ++i) {
        ASSERT_EQ(results.at("network." + parameter.name)[brain * weights[p].size() + i], weights[p][i]);
        ASSERT_EQ(results.at("adam.first_moment." + parameter.name)[brain * weights[p].size() + i], 0);
        ASSERT_EQ(results.at("adam.second_moment." + parameter.name)[brain * weights[p].size() + i], 0);
      }
      ++p;
    }
    EXPECT_EQ(results.at("adam.step")[brain], 0);
  }

  static Sample feedback_sample(std::uint32_t i) {
    Sample sample;
    for (std::uint32_t k = 0; k < 3; ++k) sample.observation.push_back(draw(3 * i + k, 2));
    sample.goal = static_cast<int>(i % 2);
    sample.choices = {static_cast<int>(i % 4)};
    sample.target = i % 3 == 0 ? -1 : 1;
    sample.weight = 0.5 + 0.25 * i;
    sample.source = static_cast<LabelSource>(i % 5 % 3);
    return sample;
  }

  BrainSpec spec;
  std::unique_ptr<Network> network;
  LearnGraph graph;
  Bindings bindings;
  Numbers replay;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sample> stored;
};

TEST_F(LearnGraphTest, AFeedbackStepMatchesItsHeader) {
  build(pet_spec(2));
  for (std::uint32_t i = 0; i < 9; ++i) remember(0, i, feedback_sample(i));
  for (std::uint32_t i = 0; i < 4; ++i) remember(1, i, feedback_sample(i + 20));
  const auto results = run();
  expect_step(0, results, feedback_loss(weights_of(*network, 0, spec.brain_count)));
  expect_step(1, results, feedback_loss(weights_of(*network, 1, spec.brain_count)));
  EXPECT_EQ(results.at("generator"), (Numbers{21, 0, 1, 0}));
}

TEST_F(LearnGraphTest, OnlyAPersonsWordsAreCountedAndDoubted) {
  build(pet_spec(2));
  const SampleLayout layout = learner_of(spec).layout(spec);
  for (std::size_t brain = 0; brain < 2; ++brain) {
    bindings["rows"][brain * rows_per_step(spec)] = 0;
    double* columns = bindings["samples"].data() + brain * rows_per_step(spec) * layout.width;
    columns[layout.goal] = 1;
    columns[layout.branches] = 3;
    columns[layout.target] = -1;
    columns[layout.weight] = 2;
    columns[layout.source] = static_cast<double>(brain == 0 ? LabelSource::reward : LabelSource::feedback);
  }
  const auto results = run();
  EXPECT_EQ(results.at("heard"), (Numbers{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(results.at("told"), (Numbers{6, 8}));
  EXPECT_EQ(results.at("taken"), (Numbers{10, 10}));
  EXPECT_EQ(results.at("told.outputs"), (Numbers{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4}));
  EXPECT_EQ(results.at("taken.outputs"), (Numbers{4, 4, 4, 4, 6, 6, 6, 6, 4, 4, 4, 4, 6, 6, 6, 6}));
  EXPECT_EQ(results.at("wrong")[0], double{0.1f});
  EXPECT_NE(results.at("wrong")[1], double{0.1f});
}

TEST_F(LearnGraphTest, ACloningStepMatchesItsHeader) {
  BrainSpec wanted = pet_spec(2);
  wanted.learner = LearnerKind::cloning;
  wanted.action = {{4, 3}, 2};
  build(wanted);
  for (std::uint32_t brain = 0; brain < 2; ++brain) {
    for (std::uint32_t i = 0; i < 9; ++i) {
      Sample sample = feedback_sample(i + 9 * brain);
      sample.choices = {static_cast<int>(i % 4), static_cast<int>(i % 3)};
      sample.continuous = {draw(i, 5), draw(i, 6)};
      remember(brain, i, sample);
    }
  }
  const auto results = run();
  expect_step(0, results, cloning_loss);
  expect_step(1, results, cloning_loss);
}

// Rewards of several sizes, terminated and continuing steps, changing goals, forbidden choices. The target
// network differs from the online one.
class DqnGraphTest : public LearnGraphTest {
 protected:
  void build_dqn(const std::function<void(BrainSpec&)>& change) {
    BrainSpec wanted = pet_spec(2);
    wanted.learner = LearnerKind::dqn;
    wanted.discount = 0.75f;
    change(wanted);
    build(wanted);
    bindings["least_reward"].assign(2, -1000);
    bindings["most_reward"].assign(2, 1000);
    bindings["since_change"].assign(2, 9);
    for (std::uint32_t brain = 0; brain < 2; ++brain) {
      targets[brain] = weights_of(*network, brain, 2);
      for (std::size_t p = 0; p < targets[brain].size(); ++p) {
        for (std::size_t i = 0; i < targets[brain][p].size(); ++i)
          targets[brain][p][i] += 0.5 * draw(static_cast<std::uint32_t>(i), 9 + brain);
        Numbers& all = bindings["target." + network->parameters()[p].name];
        all.insert(all.end(), targets[brain][p].begin(), targets[brain][p].end());
      }
      for (std::uint32_t i = 0; i < 9; ++i) {
        Sample sample = feedback_sample(i + 9 * brain);
        sample.target *= i % 2 == 0 ? 3 : 0.2;  // beyond the loss's quadratic range, and inside it
        sample.continues = i % 4 != 3;
        for (std::uint32_t k = 0; k < 3; ++k)
          sample.next.push_back(sample.continues ? draw(3 * i + k, 7 + brain) : 0);
        sample.next_goal = static_cast<int>(i / 2 % 2);
        for (std::uint32_t k = 0; k < 4; ++k) sample.allowed.push_back(sample.continues && (i + k) % 3 != 0);
        remember(brain, i, sample);
      }
    }
  }

  Weights targets[2];
};

TEST_F(DqnGraphTest, AStepMatchesItsHeader) {
  build_dqn([](BrainSpec& wanted) { wanted.target_period = 2; });
  const auto results = run();
  for (std::uint32_t brain = 0; brain < 2; ++brain) expect_step(brain, results, dqn_loss(targets[brain]));
  for (const nn::Parameter& parameter : network->parameters()) {
    const std::string name = "target." + parameter.name;
    EXPECT_EQ(results.at(name), bindings.at(name)) << "one step of two";
  }
}

TEST_F(DqnGraphTest, ADoubleStepChoosesByTheNetworkAndTheTargetFollowsIt) {
  build_dqn([](BrainSpec& wanted) {
    wanted.target_period = 1, wanted.target_rate = 0.25f, wanted.double_estimate = true;
  });
  const auto results = run();
  for (std::uint32_t brain = 0; brain < 2; ++brain) expect_step(brain, results, dqn_loss(targets[brain]));
  for (const nn::Parameter& parameter : network->parameters()) {
    const Numbers &before = bindings.at("target." + parameter.name),
                  &after = results.at("target." + parameter.name);
    const Numbers& stepped = results.at("network." + parameter.name);
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], before[i] + 0.25 * (stepped[i] - before[i]), 1e-9);
  }
}

TEST_F(DqnGraphTest, AStepOfSeveralRewardsAndTheSquaredErrorMatchTheHeader) {
  build_dqn([](BrainSpec& wanted) { wanted.n_step = 3, wanted.squared_loss = true; });
  const auto results = run();
  for (std::uint32_t brain = 0; brain < 2; ++brain) expect_step(brain, results, dqn_loss(targets[brain]));
}

TEST_F(DqnGraphTest, TheLearningRateFallsWithTheMinibatchesDownToAThirtySecond) {
  build_dqn([](BrainSpec& wanted) { wanted.rate_half_life = 10; });
  bindings["rate_age"] = {10, 1e6};
  const auto results = run();
  const float first = spec.learning_rate;
  spec.learning_rate = first / 2;
  expect_step(0, results, dqn_loss(targets[0]));
  spec.learning_rate = first / 32;
  expect_step(1, results, dqn_loss(targets[1]));
  EXPECT_EQ(results.at("rate_age"), (Numbers{11, 1e6 + 1}));
}

TEST_F(DqnGraphTest, AfterAChangeOfTheGameTheLearningRateIsTheFirstAgain) {
  build_dqn([](BrainSpec& wanted) { wanted.rate_half_life = 10; });
  bindings["rate_age"] = {10, 10};
  bindings["steps_since_change"] = {2000, 2000};
  bindings["past_reward"] = {0.8, 0.8};
  bindings["newest_reward"] = {0.8, -0.8};  // brain 1's fell
  bindings["lowest_reward"] = {-1, -1};
  bindings["highest_reward"] = {1, 1};
  EXPECT_EQ(run().at("rate_age"), (Numbers{11, 0}));
}

// Rewards of -0.5 to 0 leave returns of -2 to 0 at a discount of 3/4.
TEST_F(DqnGraphTest, NoTargetIsBeyondWhatTheRewardsAddUpTo) {
  build_dqn([](BrainSpec&) {});
  bindings["least_reward"].assign(2, -0.5);
  bindings["most_reward"].assign(2, 0);
  const auto results = run();
  for (std::uint32_t brain = 0; brain < 2; ++brain)
    expect_step(brain, results, dqn_loss(targets[brain], -2, 0));
}

TEST_F(DqnGraphTest, TheRewardsSeenAreThoseThatArrive) {
  build_dqn([](BrainSpec&) {});
  bindings["least_reward"].assign(2, 0);
  bindings["most_reward"].assign(2, 0);
  const SampleLayout layout = learner_of(spec).layout(spec);
  for (std::size_t i = 0; i < 3; ++i) {
    bindings["rows"][i] = i == 1 ? -1 : static_cast<double>(i);  // the second is no sample
    bindings["samples"][i * layout.width + layout.reward] = i == 1 ? 9 : static_cast<double>(i) - 0.5;
  }
  const auto results = run();
  EXPECT_EQ(results.at("least_reward"), (Numbers{-0.5, 0}));
  EXPECT_EQ(results.at("most_reward"), (Numbers{1.5, 0}));
}

TEST_F(DqnGraphTest, ADuelingStepIsFiniteAndMovesBothNetworks) {
  build_dqn([](BrainSpec& wanted) { wanted.dueling = true, wanted.target_period = 1; });
  const auto results = run();
  for (const std::string& name : {std::string("network.0.weight"), std::string("beside.value.0.weight"),
                                  std::string("target_value.0.weight")}) {
    const Numbers& found = results.at(name);
    EXPECT_TRUE(std::ranges::all_of(found, [](double number) { return std::isfinite(number); })) << name;
  }
}

TEST_F(DqnGraphTest, TheTargetOfABrainThatDoesNotLearnStays) {
  build_dqn([](BrainSpec& wanted) { wanted.target_period = 1; });
  bindings["filled"][1] = 0;
  const auto results = run();
  expect_untouched(1, results);
  for (const nn::Parameter& parameter : network->parameters()) {
    const Numbers &before = bindings.at("target." + parameter.name),
                  &after = results.at("target." + parameter.name);
    const Numbers& stepped = results.at("network." + parameter.name);
    for (std::size_t i = 0; i < after.size(); ++i)
      ASSERT_EQ(after[i], i < after.size() / 2 ? stepped[i] : before[i]);
  }
}

TEST_F(LearnGraphTest, WithoutMarginRivalsAreLeftAlone) {
  BrainSpec wanted = pet_spec(1);
  wanted.margin_weight = 0;
  wanted.max_gradient_norm = 0;  // no clip
  build(wanted);
  for (std::uint32_t i = 0; i < 9; ++i) remember(0, i, feedback_sample(i));
  spec.max_gradient_norm = 1e30f;  // "no clip" for the expectation
  expect_step(0, run(), feedback_loss(weights_of(*network, 0, spec.brain_count)));
}

TEST_F(LearnGraphTest, ABrainWithoutSamplesStaysAsItIs) {
  build(pet_spec(3));
  for (std::uint32_t i = 0; i < 9; ++i) remember(1, i, feedback_sample(i));
  const auto results = run();
  expect_untouched(0, results);
  expect_step(1, results, feedback_loss(weights_of(*network, 1, spec.brain_count)));
  expect_untouched(2, results);
}

TEST_F(LearnGraphTest, NumbersThatAreNotFiniteStayOutOfTheWeights) {
  build(pet_spec(2));
  for (std::uint32_t i = 0; i < 9; ++i) remember(0, i, feedback_sample(i));
  Sample poison = feedback_sample(1);
  poison.weight = 1e308;
  poison.target = -1e100;
  for (std::uint32_t i = 0; i < 9; ++i) remember(1, i, poison);
  const auto results = run();
  EXPECT_FALSE(std::isfinite(results.at("loss")[1]));
  expect_step(0, results, feedback_loss(weights_of(*network, 0, spec.brain_count)));
  expect_untouched(1, results);
}

// With one sample each the draw has no choice. So a kennel and single brains get the same minibatches.
TEST_F(LearnGraphTest, AKennelIsThatManySingleBrains) {
  build(pet_spec(4));
  for (std::uint32_t p = 0; p < 4; ++p) remember(p, 0, feedback_sample(p));
  const auto kennel = run();
  for (std::uint32_t p = 0; p < 4; ++p) {
    LearnGraphTest_AKennelIsThatManySingleBrains_Test single;
    BrainSpec alone = pet_spec(1);
    alone.seed += p;
    single.build(alone);
    single.remember(0, 0, feedback_sample(p));
    const auto results = single.run();
    for (const auto& [name, values] : results) {
      if (name == "generator") continue;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(kennel.at(name)[p * values.size() + i], values[i]) << name << " of brain " << p;
    }
  }
}

}  // namespace
}  // namespace imprint::agent

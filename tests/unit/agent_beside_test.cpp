// Demonstrations and signals beside a learner's rewards, against plain loops in double precision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/demonstration_memory.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/validate.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent::beside_test {
namespace {

using namespace oracle;
using ::testing::HasSubstr;

constexpr std::uint32_t kSteps = 8;

BrainSpec demonstration_spec(LearnerKind learner) {
  BrainSpec spec = pet_spec(1);
  spec.learner = learner;
  spec.max_gradient_norm = 0;
  spec.rollout_steps = spec.batch_size = kSteps;
  spec.replay_capacity = 16;
  spec.epochs = 1;
  spec.discount = 0.75f;
  spec.advantage_decay = 0.5f;
  return spec;
}

class BesideTest : public ::testing::Test {
 protected:
  void build(const BrainSpec& wanted) {
    spec = wanted;
    network.emplace(Network::create(spec).value());
    auto described = describe_learning(spec, *network);
    ASSERT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    layout = learner_of(spec).layout(spec);
    const std::uint32_t rows = rows_per_step(spec);
    state["rows"].assign(rows, -1);
    state["filled"].assign(1, 0);
    state["samples"].assign(std::size_t{rows} * layout.width, 0);
    if (!spec.keeps_demonstrations()) return;
    state["demonstrations"].assign(
        std::size_t{spec.demonstration_capacity} * demonstration_layout(spec).width, 0);
    state["demonstrations filled"].assign(1, 0);
  }

  // One demonstration, so that every draw is it.
  void show(const Numbers& observation, int goal, int choice) {
    const SampleLayout columns = demonstration_layout(spec);
    Numbers& rows = state["demonstrations"];
    std::ranges::copy(observation, rows.begin() + columns.observation);
    rows[columns.goal] = goal;
    rows[columns.branches] = choice;
    rows[columns.weight] = 2;
    state["demonstrations filled"][0] = 1;
  }

  // A step of a rollout. A trajectory begins at 0 and at 5.
  void give(std::uint32_t k, const Numbers& seen, const Numbers& next, bool ends) {
    double* row = state["samples"].data() + std::size_t{k} * layout.width;
    std::ranges::copy(seen, row + layout.observation);
    std::ranges::copy(next, row + layout.next_observation);
    row[layout.branches] = k % 4;
    row[layout.reward] = draw(k, 5);
    row[layout.log_probability] = -1;
    row[layout.begins] = k == 0 || k == 5 ? 1 : 0;
    std::fill_n(row + layout.allowed, 4, 1.0);
    row[layout.continues] = ends ? 0 : 1;
  }

  void run_all() {
    const auto run = [&](const ProgramDescription& part, std::uint32_t times) {
      for (std::uint32_t turn = 0; turn < times; ++turn) reference::run_updates(part.updates, state);
    };
    if (graph.sequence.parts.empty()) return run(graph.description, 1);
    for (const ProgramPart& part : graph.sequence.parts) run(part.description, part.repeat);
  }

  const Variable& kept(const std::string& name) const {
    for (const StateVariable& entry : graph.state)
      if (entry.name == name) return entry.variable;
    throw std::runtime_error(name);
  }
  Numbers content(const std::string& name) const { return reference::content(kept(name), state); }

  // Adam's first moments are a tenth of the gradient, which is that of the plain loss by differences.
  void expect_gradient(const std::string& moments, const std::function<double(const Weights&)>& loss) {
    const Weights first = weights_of(*network, 0, 1);
    for (std::size_t k = 0; k < first.size(); ++k) {
      const Numbers moment = content(moments + network->parameters()[k].name);
      for (std::size_t i = 0; i < first[k].size(); ++i) {
        constexpr double kStep = 1e-5;
        Weights more = first, less = first;
        more[k][i] += kStep;
        less[k][i] -= kStep;
        EXPECT_NEAR(10 * moment[i], (loss(more) - loss(less)) / (2 * kStep), 1e-5)
            << network->parameters()[k].name << "[" << i << "]";
      }
    }
  }

  BrainSpec spec;
  SampleLayout layout;
  std::optional<Network> network;
  LearnGraph graph;
  reference::Bindings state;
};

const Numbers kSeen = {0.3, -0.8, 0.5};

TEST_F(BesideTest, PpoClonesWhatWasShownWithoutARollout) {
  BrainSpec wanted = demonstration_spec(LearnerKind::ppo);
  wanted.demonstration_capacity = 4;
  wanted.demonstration_batch = 8;
  wanted.demonstration_strength = 0.5f;
  build(wanted);
  show(kSeen, 1, 2);
  const Numbers critic = content("critic.0.weight");
  run_all();
  expect_gradient("adam.first_moment.actor.", [&](const Weights& weights) {
    const Numbers logits = forward(spec, weights, kSeen);
    double sum = 0;
    for (std::size_t i = 4; i < 8; ++i) sum += std::exp(logits[i]);
    return 0.5 * (std::log(sum) - logits[4 + 2]);
  });
  EXPECT_EQ(content("critic.0.weight"), critic) << "there was no rollout";
  EXPECT_EQ(content("demonstration_age"), Numbers{1});
}

// The half-life: after as many minibatches the loss counts half.
TEST_F(BesideTest, WhatWasShownCountsLessAndLess) {
  BrainSpec wanted = demonstration_spec(LearnerKind::ppo);
  wanted.demonstration_capacity = 4;
  wanted.demonstration_half_life = 3;
  build(wanted);
  show(kSeen, 0, 1);
  state["published.demonstration_age"] = {6};
  run_all();
  expect_gradient("adam.first_moment.actor.", [&](const Weights& weights) {
    const Numbers logits = forward(spec, weights, kSeen);
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += std::exp(logits[i]);
    return (std::log(sum) - logits[1]) / 4;
  });
}

TEST_F(BesideTest, DqnRatesWhatWasShownAboveOthersByAMargin) {
  BrainSpec wanted = demonstration_spec(LearnerKind::dqn);
  wanted.demonstration_capacity = 4;
  wanted.demonstration_margin = 0.7f;
  build(wanted);
  show(kSeen, 1, 3);
  run_all();
  expect_gradient("adam.first_moment.", [&](const Weights& weights) {
    const Numbers values = forward(spec, weights, kSeen);
    double best = -1e30;
    for (std::size_t i = 0; i < 4; ++i)
      best = std::max(best, values[4 + i] + (i == 3 ? 0 : double{spec.demonstration_margin}));
    return best - values[4 + 3];
  });
}

TEST_F(BesideTest, NothingShownChangesNothing) {
  BrainSpec wanted = demonstration_spec(LearnerKind::dqn);
  wanted.demonstration_capacity = 4;
  build(wanted);
  run_all();
  for (const nn::Parameter& parameter : network->parameters())
    EXPECT_EQ(reference::content(parameter.variable, state), reference::initial_values(parameter.variable));
}

// ---- signals in a rollout ----

Numbers layers(const std::vector<Numbers>& weights, const std::vector<Numbers>& biases, Numbers x) {
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    Numbers y = biases[layer];
    for (std::size_t in = 0; in < x.size(); ++in)
      for (std::size_t out = 0; out < y.size(); ++out) y[out] += x[in] * weights[layer][in * y.size() + out];
    if (layer + 1 < weights.size())
      for (double& value : y) value = std::max(value, 0.0);
    x = y;
  }
  return x;
}

// Curiosity has a value and a discount of its own, goes on after an episode, and is added by its strength.
TEST_F(BesideTest, CuriosityInARolloutIsThatOfPlainLoops) {
  BrainSpec wanted = demonstration_spec(LearnerKind::ppo);
  wanted.observation.scale.clear();
  wanted.curiosity_strength = 0.6f;
  wanted.reward_strength = 1.5f;
  wanted.curiosity_discount = 0.9f;
  wanted.signal_size = 4;
  build(wanted);
  const auto seen = [](std::uint32_t k, std::uint32_t stream) {
    return Numbers{draw(3 * k, stream), draw(3 * k + 1, stream), draw(3 * k + 2, stream)};
  };
  const auto ends = [](std::uint32_t k) { return k == 4; };
  for (std::uint32_t k = 0; k < kSteps; ++k) give(k, seen(k, 2), ends(k) ? Numbers(3) : seen(k, 4), ends(k));
  state["filled"] = {kSteps};
  const auto net = [&](const std::string& part, std::size_t count) {
    std::pair<std::vector<Numbers>, std::vector<Numbers>> found;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "signals.curiosity." + part + "." + std::to_string(i);
      found.first.push_back(content(name + ".weight"));
      found.second.push_back(content(name + ".bias"));
    }
    return found;
  };
  const auto target = net("target", 2), predictor = net("predictor", 3);
  Weights critic;
  for (const nn::Parameter& parameter : network->parameters())
    critic.push_back(content("critic." + parameter.name));
  for (const std::size_t part : {0u, 1u})
    reference::run_updates(graph.sequence.parts[part].description.updates, state);

  Numbers mean(3), variance(3);
  for (std::uint32_t k = 0; k < kSteps; ++k)
    for (std::size_t i = 0; i < 3; ++i) mean[i] += seen(k, 2)[i] / kSteps;
  for (std::uint32_t k = 0; k < kSteps; ++k)
    for (std::size_t i = 0; i < 3; ++i) variance[i] += std::pow(seen(k, 2)[i] - mean[i], 2) / kSteps;
  Numbers raw(kSteps), sums(kSteps);
  for (std::uint32_t k = 0; k < kSteps; ++k) {
    Numbers x = ends(k) ? seen(k, 2) : seen(k, 4);
    for (std::size_t i = 0; i < 3; ++i)
      x[i] = std::clamp((x[i] - mean[i]) / std::sqrt(variance[i]), -5.0, 5.0);
    const Numbers wanted_features = layers(target.first, target.second, x),
                  found = layers(predictor.first, predictor.second, x);
    for (std::size_t i = 0; i < found.size(); ++i)
      raw[k] += std::pow(found[i] - wanted_features[i], 2) / static_cast<double>(found.size());
    sums[k] = raw[k] + (k == 0 || k == 5 ? 0 : 0.9 * sums[k - 1]);
  }
  double sum_mean = 0, spread = 0;
  for (const double sum : sums) sum_mean += sum / kSteps;
  for (const double sum : sums) spread += (sum - sum_mean) * (sum - sum_mean) / kSteps;
  const auto value = [&](const Numbers& x, std::size_t of) { return forward(spec, critic, x)[of]; };
  double curious = 0, earned = 0;
  Numbers expected(kSteps);
  for (std::uint32_t k = kSteps; k-- > 0;) {
    const bool goes_on = k < kSteps - 1 && k != 4;
    const Numbers here = seen(k, 2), later = seen(k, 4);
    const double reward = std::min(raw[k] / std::sqrt(spread), 5.0);
    curious = reward + 0.9 * (ends(k) ? value(here, 1) : value(later, 1)) - value(here, 1) +
              (goes_on ? 0.9 * 0.5 * curious : 0);
    earned = draw(k, 5) + (ends(k) ? 0 : 0.75 * value(later, 0)) - value(here, 0) +
             (goes_on ? 0.75 * 0.5 * earned : 0);
    EXPECT_NEAR(state.at("target.curiosity")[k], curious + value(here, 1), 1e-3) << k;
    EXPECT_NEAR(state.at("value_target")[k], earned + value(here, 0), 1e-6) << k;
    expected[k] = 1.5 * earned + 0.6 * curious;
  }
  double middle = 0, square = 0;
  for (const double one : expected) middle += one / kSteps;
  for (const double one : expected) square += (one - middle) * (one - middle) / (kSteps - 1);
  for (std::size_t place = 0; place < kSteps; ++place) {
    const auto row = static_cast<std::size_t>(state.at("order")[place]);
    EXPECT_NEAR(state.at("advantage")[place], (expected[row] - middle) / std::sqrt(square), 2e-3) << row;
  }
}

// ---- groups ----

// Advantages by the value of the set, whatever its order; an agent that left goes on with what is left.
TEST_F(BesideTest, AGroupsValueIsThatOfItsSet) {
  BrainSpec wanted = demonstration_spec(LearnerKind::ppo);
  wanted.goal_count = 1;
  wanted.group_size = 2;
  build(wanted);
  const std::uint32_t width = wanted.group_width();
  ASSERT_EQ(width, 7u);
  const auto pair = [](std::uint32_t k, bool turned) {
    Numbers set{2, 0, 0, 0, 0, 0, 0};
    for (std::uint32_t i = 0; i < 6; ++i) set[1 + (turned ? (i + 3) % 6 : i)] = draw(6 * k + i, 2);
    return set;
  };
  const auto rest = [](std::uint32_t k) {  // one is left
    return Numbers{1, draw(k, 3), draw(k, 4), draw(k, 6), 0, 0, 0};
  };
  const auto leaves = [](std::uint32_t k) { return k == 3; };
  for (std::uint32_t k = 0; k < kSteps; ++k) {
    double* row = state["samples"].data() + std::size_t{k} * layout.width;
    std::ranges::copy(pair(k, k % 2 == 1), row + layout.group);
    std::ranges::copy(leaves(k) ? rest(k) : pair(k + 1, false), row + layout.next_group);
    row[layout.reward] = draw(k, 5);
    row[layout.begins] = k == 0 || k == 4 ? 1 : 0;
    std::fill_n(row + layout.allowed, 4, 1.0);
    row[layout.continues] = 1;
  }
  state["filled"] = {kSteps};
  BrainSpec critic = spec;
  critic.observation = {.count = width};
  critic.observation.streams = {{.kind = StreamKind::entities, .count = 2, .features = 3}};
  critic.action = {{}, 1};
  critic.seed += std::uint64_t{1} << 40;
  const Network same = Network::create(critic, "critic", 1.0).value();  // the same first weights
  const auto value = [&](Numbers set) {
    for (std::size_t i = 0; i < 6; ++i) set[1 + i] *= double{spec.observation.scale[i % 3]};
    return reference::evaluate(same.heads_of_scaled(input("set", {1, 1, width})), {{"set", set}})[0];
  };
  for (const std::size_t part : {0u, 1u})
    reference::run_updates(graph.sequence.parts[part].description.updates, state);
  double advantage = 0;
  for (std::uint32_t k = kSteps; k-- > 0;) {
    const double here = value(pair(k, false)), later = value(leaves(k) ? rest(k) : pair(k + 1, false));
    const bool goes_on = k < kSteps - 1 && k != 3;
    advantage = draw(k, 5) + 0.75 * later - here + (goes_on ? 0.75 * 0.5 * advantage : 0);
    EXPECT_NEAR(state.at("value_target")[k], advantage + here, 1e-6) << k;
  }
}

// ---- the memory ----

TEST(DemonstrationMemory, KeepsTheNewestAndTellsItsChanges) {
  BrainSpec spec = pet_spec(2);
  spec.demonstration_capacity = 3;
  DemonstrationMemory memory(spec);
  EXPECT_TRUE(memory.empty());
  EXPECT_EQ(memory.version(), 0u);
  for (int i = 0; i < 4; ++i) memory.add(1)[0] = static_cast<float>(i);
  EXPECT_EQ(memory.count(), 3u);
  EXPECT_EQ(memory.filled()[0], 0);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(memory.row(1, i)[0], static_cast<float>(i + 1));
  const DemonstrationMemory before = memory;
  memory.add(0);
  EXPECT_NE(memory.version(), before.version());
  memory.clear();
  EXPECT_TRUE(memory.empty());
  EXPECT_EQ(before.count(), 3u) << "a snapshot's copy is its own";
}

// ---- refusals ----

std::string refusal(const std::function<void(BrainSpec&)>& change, LearnerKind learner = LearnerKind::ppo) {
  BrainSpec spec = demonstration_spec(learner);
  spec.demonstration_capacity = 4;
  spec.imitation_strength = 1;
  change(spec);
  const Result<BrainSpec> made = checked(spec);
  return made.ok() ? "" : made.error().message;
}

TEST(Beside, WhatDoesNotSuitIsRefusedWithTheRemedy) {
  EXPECT_EQ(refusal([](BrainSpec&) {}), "");
  EXPECT_EQ(refusal([](BrainSpec&) {}, LearnerKind::dqn), "");
  EXPECT_THAT(
      refusal([](BrainSpec&) {}, LearnerKind::feedback),
      HasSubstr("found the feedback learner, expected dqn, sac or ppo. Remove the struct: this learner "
                "takes demonstrations without it."));
  EXPECT_THAT(refusal([](BrainSpec&) {}, LearnerKind::none), HasSubstr("found the none learner"));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.demonstration_capacity = 0; }),
              HasSubstr("imitation_strength: found 1, expected 0 without demonstrations. Add "
                        "imp_demonstration_options to the chain"));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.cell = Cell::gru; }),
              HasSubstr("found cell gru, expected none. Use stack instead."));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.curiosity_discount = 0.9f; }, LearnerKind::dqn),
              HasSubstr("curiosity_discount: found 0.9, expected 0, because the dqn learner has one value"));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.process_count = 2; }), HasSubstr("imp_shared_learning"));
  EXPECT_THAT(refusal([](BrainSpec& spec) {
                spec.observation.streams = {{.kind = StreamKind::vector, .count = 3}};
                spec.observation.scale.clear();
              }),
              HasSubstr("found streams, expected none"));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.demonstration_batch = 0; }),
              HasSubstr("batch_size: found 0"));
  EXPECT_THAT(refusal([](BrainSpec& spec) { spec.imitation_strength = -1; }),
              HasSubstr("imitation_strength: found -1"));
}

}  // namespace
}  // namespace imprint::agent::beside_test

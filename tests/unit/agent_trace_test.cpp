// Learn steps with an eligibility trace against the rule, step by step; gradients by central differences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
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

struct Deed {
  Numbers observation;
  int goal = 0;
  std::vector<int> choices;  // of branches of 4 and 3
  std::vector<int> allowed;  // 7
  double feedback = 0;
  bool begins = false;
};

BrainSpec coach_spec() {
  BrainSpec spec = pet_spec(3);
  spec.learner = LearnerKind::coach;
  spec.action.branch_sizes = {4, 3};
  spec.trace_decay = 0.6f;
  spec.learning_rate = 0.1f;
  spec.max_gradient_norm = 0;
  return spec;
}

double log_probability(const BrainSpec& spec, const Weights& weights, const Deed& deed) {
  const Numbers heads = forward(spec, weights, deed.observation);
  double total = 0;
  std::size_t at = 0;
  for (std::size_t b = 0; b < 2; ++b) {
    double sum = 0;
    const auto logit = [&](std::size_t i) { return heads[static_cast<std::size_t>(deed.goal) * 7 + at + i]; };
    for (std::size_t i = 0; i < spec.action.branch_sizes[b]; ++i)
      if (deed.allowed[at + i]) sum += std::exp(logit(i));
    total += logit(static_cast<std::size_t>(deed.choices[b])) - std::log(sum);
    at += spec.action.branch_sizes[b];
  }
  return total;
}

Weights gradient(const BrainSpec& spec, Weights weights, const Deed& deed) {
  Weights slopes = weights;
  for (std::size_t p = 0; p < weights.size(); ++p)
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      constexpr double h = 1e-5;
      const double centre = weights[p][i];
      weights[p][i] = centre + h;
      const double above = log_probability(spec, weights, deed);
      weights[p][i] = centre - h;
      slopes[p][i] = (above - log_probability(spec, weights, deed)) / (2 * h);
      weights[p][i] = centre;
    }
  return slopes;
}

class TraceTest : public ::testing::Test {
 protected:
  void build(const BrainSpec& wanted) {
    spec = wanted;
    auto made = Network::create(spec);
    ASSERT_TRUE(made.ok());
    network = std::make_unique<Network>(*made);
    auto described = describe_learning(spec, *network);
    ASSERT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    const std::size_t rows = std::size_t{spec.brain_count} * rows_per_step(spec);
    bindings["rows"].assign(rows, -1);
    bindings["samples"].assign(rows * learner_of(spec).layout(spec).width,
                               0.25);  // unused elements may hold anything
    bindings["filled"].assign(spec.brain_count, 0);
    for (std::size_t p = 0; p < network->parameters().size(); ++p) {
      Numbers& trace = bindings["trace." + network->parameters()[p].name];
      trace.resize(static_cast<std::size_t>(network->parameters()[p].variable.shape().element_count()));
      for (std::size_t i = 0; i < trace.size(); ++i)
        trace[i] = 0.3 * draw(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(20 + p));
    }
  }

  void give(std::uint32_t brain, const std::vector<Deed>& deeds) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    for (std::size_t k = 0; k < deeds.size(); ++k) {
      const Deed& deed = deeds[k];
      double* columns =
          bindings["samples"].data() + (std::size_t{brain} * rows_per_step(spec) + k) * layout.width;
      std::copy(deed.observation.begin(), deed.observation.end(), columns + layout.observation);
      columns[layout.goal] = deed.goal;
      for (std::size_t b = 0; b < 2; ++b) columns[layout.branches + b] = deed.choices[b];
      columns[layout.reward] = deed.feedback;
      columns[layout.begins] = deed.begins ? 1 : 0;
      for (std::size_t i = 0; i < 7; ++i) columns[layout.allowed + i] = deed.allowed[i];
    }
    bindings["filled"][brain] = static_cast<double>(deeds.size());
    given[brain] = deeds;
  }

  static Deed deed(std::uint32_t i, double feedback, bool begins) {
    Deed made;
    for (std::uint32_t k = 0; k < 3; ++k) made.observation.push_back(draw(3 * i + k, 2));
    made.goal = static_cast<int>(i % 2);
    made.choices = {static_cast<int>(i % 4), static_cast<int>(i % 3)};
    made.allowed.assign(7, 1);
    made.allowed[(i + 1) % 4] = 0;
    made.feedback = feedback;
    made.begins = begins;
    return made;
  }

  std::map<std::string, Numbers> run() {
    std::vector<Tensor> wanted{graph.description.outputs[LearnGraph::kLoss]};
    std::vector<std::string> names{"loss"};
    for (const Update& update : graph.description.updates) {
      names.push_back(update.target.name());
      wanted.push_back(update.value);
    }
    const auto values = reference::evaluate_all(wanted, bindings);
    std::map<std::string, Numbers> results;
    for (std::size_t i = 0; i < names.size(); ++i) results[names[i]] = values[i];
    return results;
  }

  // max_norm: limit of the change before the rate.
  void expect_rule(std::uint32_t brain, const std::map<std::string, Numbers>& results,
                   double max_norm = 1e30) {
    const Weights weights = weights_of(*network, brain, spec.brain_count);
    Weights trace = weights, change = weights;
    double loss = 0, squares = 0;
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t i = 0; i < weights[p].size(); ++i) {
        trace[p][i] = bindings.at("trace." + network->parameters()[p].name)[brain * weights[p].size() + i];
        change[p][i] = 0;
      }
    for (const Deed& deed : given[brain]) {
      const Weights slopes = gradient(spec, weights, deed);
      for (std::size_t p = 0; p < weights.size(); ++p)
        for (std::size_t i = 0; i < weights[p].size(); ++i) {
          trace[p][i] = (deed.begins ? 0 : double{spec.trace_decay}) * trace[p][i] + slopes[p][i];
          change[p][i] += deed.feedback * trace[p][i];
        }
      loss -= deed.feedback * log_probability(spec, weights, deed);
    }
    for (const Numbers& part : change)
      for (const double value : part) squares += value * value;
    const double scale = std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6));
    EXPECT_NEAR(results.at("loss")[brain], loss, 1e-9);
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t i = 0; i < weights[p].size(); ++i) {
        const std::string& name = network->parameters()[p].name;
        const std::size_t at = brain * weights[p].size() + i;
        ASSERT_NEAR(results.at("trace." + name)[at], trace[p][i], 1e-8) << name << " " << i;
        ASSERT_NEAR(results.at("network." + name)[at],
                    weights[p][i] + double{spec.learning_rate} * scale * change[p][i], 1e-8)
            << name << " " << i;
      }
  }

  void expect_untouched(std::uint32_t brain, const std::map<std::string, Numbers>& results) {
    const Weights weights = weights_of(*network, brain, spec.brain_count);
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t i = 0; i < weights[p].size(); ++i) {
        const std::string& name = network->parameters()[p].name;
        const std::size_t at = brain * weights[p].size() + i;
        ASSERT_EQ(results.at("trace." + name)[at], bindings.at("trace." + name)[at]);
        ASSERT_EQ(results.at("network." + name)[at], weights[p][i]);
      }
  }

  BrainSpec spec;
  std::unique_ptr<Network> network;
  LearnGraph graph;
  reference::Bindings bindings;
  std::map<std::uint32_t, std::vector<Deed>> given;
};

TEST_F(TraceTest, ARunOfStepsMatchesItsHeader) {
  build(coach_spec());
  // Feedback for some steps, an episode that begins in the middle, a full intake, and an empty one.
  give(0, {deed(0, 0, false), deed(1, 1, false), deed(2, -0.5, true), deed(3, 0, false), deed(4, 2, false)});
  std::vector<Deed> all;
  for (std::uint32_t i = 0; i < 8; ++i) all.push_back(deed(i + 5, i % 3 == 0 ? 1.0 : -0.25, i == 0));
  ASSERT_EQ(rows_per_step(spec), all.size());
  give(1, all);
  const auto results = run();
  expect_rule(0, results);
  expect_rule(1, results);
  expect_untouched(2, results);
}

TEST_F(TraceTest, WithoutFeedbackOnlyTheTraceMoves) {
  build(coach_spec());
  give(0, {deed(0, 0, false), deed(1, 0, false)});
  const auto results = run();
  expect_rule(0, results);
  for (const nn::Parameter& parameter : network->parameters())
    EXPECT_EQ(results.at("network." + parameter.name), reference::initial_values(parameter.variable));
}

TEST_F(TraceTest, TheChangeIsCutAndTheTraceIsNot) {
  BrainSpec wanted = coach_spec();
  wanted.max_gradient_norm = 0.125f;
  build(wanted);
  give(0, {deed(0, 1, false), deed(1, 1, false)});
  expect_rule(0, run(), 0.125);
}

TEST_F(TraceTest, NumbersThatAreNotFiniteStayOut) {
  build(coach_spec());
  Deed poison = deed(0, 1e308, false);
  give(0, {poison, poison, poison});
  give(1, {deed(1, 1, true)});
  const auto results = run();
  EXPECT_FALSE(std::isfinite(results.at("loss")[0]));
  expect_untouched(0, results);
  expect_rule(1, results);
}

}  // namespace
}  // namespace imprint::agent

// The ES learner against plain loops in double precision: which steps count, ranks, and the mean afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plugin/agent/learn/registry.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/learn/training/describe_learning.h"
#include "plugin/agent/validate.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

using namespace oracle;

constexpr std::uint32_t kMembers = 5, kStale = 5;  // first steps with new weights: 1 frame, latency 2, 2 more

BrainSpec es_spec() {
  BrainSpec spec = pet_spec(kMembers);
  spec.learner = LearnerKind::es;
  spec.rollout_steps = 30;
  spec.learn_period_frames = 1;
  spec.exploration = 0.25f;
  return spec;
}

struct EsStep {
  double reward = 0;
  bool begins = false;
};

class EsTest : public ::testing::Test {
 protected:
  EsTest() {
    rows = rows_per_step(spec);
    auto described = describe_learning(spec, network);
    EXPECT_TRUE(described.ok()) << described.error().message;
    graph = *described;
    state["rows"].assign(std::size_t{kMembers} * rows, -1);
  }

  void learn(const std::vector<std::vector<EsStep>>& steps) {
    const SampleLayout layout = learner_of(spec).layout(spec);
    state["samples"].assign(std::size_t{kMembers} * rows * layout.width, 1e3);  // what is in the others
    state["filled"].assign(kMembers, 0);
    for (std::size_t p = 0; p < steps.size(); ++p) {
      for (std::size_t k = 0; k < steps[p].size(); ++k) {
        double* row = state["samples"].data() + (p * rows + k) * layout.width;
        row[layout.reward] = steps[p][k].reward;
        row[layout.begins] = steps[p][k].begins ? 1 : 0;
      }
      state["filled"][p] = static_cast<double>(steps[p].size());
    }
    losses = reference::evaluate(graph.description.outputs[0], state);
    reference::run_updates(graph.description.updates, state);
  }
  // All members' first parameter, or one's.
  Numbers weights() const { return reference::content(network.parameters()[0].variable, state); }
  static Numbers of(const Numbers& all, std::size_t member) {
    const auto size = static_cast<std::ptrdiff_t>(all.size() / kMembers);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(member) * size;
    return {first, first + size};
  }
  double generation() const { return state.at("generation")[0]; }

  BrainSpec spec = es_spec();
  Network network = Network::create(spec).value();
  LearnGraph graph;
  reference::Bindings state;
  Numbers losses;
  std::uint32_t rows = 0;
};

// The first learn step draws the members around the first brain, in opposite pairs.
TEST_F(EsTest, MembersStandInPairsAroundTheFirst) {
  const Numbers first = of(weights(), 0);
  learn({});
  EXPECT_EQ(generation(), 1);
  const Numbers all = weights();
  EXPECT_EQ(of(all, 0), first);
  double squares = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (const std::size_t pair : {1u, 3u})
      EXPECT_NEAR(of(all, pair)[i] - first[i], first[i] - of(all, pair + 1)[i], 1e-6);
    EXPECT_NE(of(all, 1)[i], of(all, 3)[i]);
    squares += std::pow(of(all, 1)[i] - first[i], 2) + std::pow(of(all, 3)[i] - first[i], 2);
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(2 * first.size())), 0.25, 0.08);
}

TEST_F(EsTest, TheMeanMovesToMembersThatEarnMore) {
  learn({});
  const Numbers before = weights();
  // The first kStale steps are by weights from before, and those until an episode begins belong to an older
  // one.
  std::vector<std::vector<EsStep>> steps(kMembers, std::vector<EsStep>(kStale, {100, false}));
  steps[2][1].begins = true;  // too early
  learn(steps);
  EXPECT_EQ(generation(), 1);
  // Means of whole episodes: 3, (1 + 4) / 2, 6, 2, 6.
  learn({{{50, false}, {1, true}, {2, false}, {9, true}},
         {{1, true}, {4, true}, {70, true}},
         {{6, true}, {9, true}},
         {{2, true}, {9, true}},
         {{5, true}}});
  EXPECT_EQ(generation(), 1) << "the last one has not finished an episode";
  EXPECT_EQ(weights(), before);
  learn({{}, {}, {}, {}, {{1, false}, {9, true}}});
  EXPECT_EQ(generation(), 2);
  const double ranks[kMembers] = {2, 1, 3.5, 0, 3.5};
  const Numbers after = weights(), mean = of(before, 0), moved = of(after, 0);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double ascent = 0;
    for (std::size_t p = 0; p < kMembers; ++p)
      ascent += (ranks[p] / 4 - 0.5) * (of(before, p)[i] - mean[i]) / (0.25 * 0.25 * 4);
    // Adam's first step: momentum 0.1 g / 0.1 by the root of squares 0.001 g^2 / 0.001.
    EXPECT_NEAR(moved[i], mean[i] + double{spec.learning_rate} * ascent / (std::abs(ascent) + 1e-8), 1e-5);
    EXPECT_NEAR(of(after, 1)[i] - moved[i], moved[i] - of(after, 2)[i], 1e-6) << "and all are drawn again";
  }
  EXPECT_EQ(state["tally.steps"], Numbers(kMembers, 0.0));
}

// A long episode counts at rollout_steps; a member without a body does not hold up the others.
TEST_F(EsTest, NeitherLongEpisodesNorAbsentMembersHoldUpOthers) {
  spec.rollout_steps = 30;
  learn({});
  std::vector<std::vector<EsStep>> steps(kMembers - 1, std::vector<EsStep>(rows, {1, false}));
  for (int i = 0; i < 40 && generation() < 2; ++i) learn(steps);
  EXPECT_EQ(generation(), 2);
  for (const double loss : losses) EXPECT_EQ(loss, 0);
  steps[1][0].reward = std::nan("");
  learn(steps);
  EXPECT_TRUE(std::isnan(losses[1])) << "the host stops it";
  EXPECT_EQ(losses[0], 0);
  for (const double value : weights()) EXPECT_TRUE(std::isfinite(value));
}

TEST(Es, NeedsAKennelOfBodies) {
  const auto refusal = [](std::uint32_t brains, std::uint32_t agents) {
    BrainSpec spec = es_spec();
    spec.brain_count = brains;
    spec.agents_per_brain = agents;
    const Result<> status = validate(spec);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(refusal(2, 1), "ok");
  EXPECT_THAT(refusal(1, 1), ::testing::HasSubstr("found 1 and 1, expected brain_count of 2 or more"));
  EXPECT_THAT(refusal(5, 2), ::testing::HasSubstr("found 5 and 2"));
}

}  // namespace
}  // namespace imprint::agent

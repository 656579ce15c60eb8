// The learners that plugin/docs/adding-a-learner.md adds: compiled from the page.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/learn/learners/echo.h"
#include "plugin/agent/learn/learners/habit.h"
#include "plugin/agent/learn/samples/samples.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/agent_oracle.h"

namespace imprint::agent {
namespace {

TEST(PageLearner, LearnsFromPraiseAndNotFromScolding) {
  BrainSpec spec;
  spec.observation.count = 4;
  spec.action.branch_sizes = {3};
  const Learner& echo = echo_learner();
  EXPECT_TRUE(echo.check_actions(spec).ok());
  const SampleLayout layout = echo.layout(spec);
  std::vector<float> row(layout.width, -1.0f);
  echo.label(row, layout, 1.0f, 2.0f, LabelSource::feedback);
  EXPECT_EQ(row[layout.weight], 2.0f);
  echo.label(row, layout, -1.0f, 2.0f, LabelSource::feedback);
  EXPECT_EQ(row[layout.weight], 0.0f);
  spec.action.branch_sizes = {3, 2};
  EXPECT_FALSE(echo.check_actions(spec).ok());
}

// Brain 0 was rewarded twice, brain 1 never, brain 2 has no samples, brain 3 a number that is not finite.
TEST(PageLearner, WithoutMemoryRepeatsWhatWasRewarded) {
  constexpr std::uint32_t kBrains = 4, kChoices = 4;
  const BrainSpec spec = oracle::pet_spec(kBrains);
  ASSERT_EQ(spec.action.choice_count(), kChoices);
  const auto network = Network::create(spec);
  ASSERT_TRUE(network.ok()) << network.error().message;
  const Learner& habit = habit_learner();
  const SampleLayout layout = habit.layout(spec);
  const std::int64_t rows = rows_per_step(spec);
  LearnInputs intake;
  intake.filled = input("filled", {kBrains}, DType::int32);
  intake.samples = input("samples", {kBrains * rows, layout.width}, DType::float32);
  LearnGraph graph;
  const Result<> described = habit.describe(spec, *network, intake, graph);
  ASSERT_TRUE(described.ok()) << described.error().message;

  reference::Bindings bindings;
  bindings["filled"] = {3, 2, 0, 1};
  std::vector<double>& samples = bindings["samples"];
  samples.assign(static_cast<std::size_t>(kBrains * rows) * layout.width, 1);  // unused rows look rewarded
  const auto step = [&](std::size_t brain, std::size_t row, double choice, double reward) {
    double* columns = samples.data() + (brain * static_cast<std::size_t>(rows) + row) * layout.width;
    columns[layout.branches] = choice, columns[layout.reward] = reward;
  };
  step(0, 0, 1, 1), step(0, 1, 3, 0.5), step(0, 2, 0, -1);
  step(1, 0, 0, 0), step(1, 1, 2, -1);
  step(3, 0, 1, std::numeric_limits<double>::infinity());

  std::vector<Tensor> wanted = graph.description.outputs;
  for (const Update& update : graph.description.updates) wanted.push_back(update.value);
  for (const Update& update : graph.description.updates) wanted.push_back(update.target.value());
  const auto values = reference::evaluate_all(wanted, bindings);
  EXPECT_EQ(values[0][0], 0);
  EXPECT_TRUE(std::isnan(values[0][3])) << "tells the host";
  for (const std::size_t part : {1u, 2u}) {
    const auto &found = values[part], &before = values[part + 2];
    const std::size_t each = found.size() / kBrains;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool learns = i < each, chosen = part == 2 && i % kChoices == 3;
      EXPECT_EQ(found[i], learns ? (chosen ? 1 : 0) : before[i]) << "update " << part << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace imprint::agent

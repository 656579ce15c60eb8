// Planning takes near-linear work for large graphs of every kind: counted in steps, not in seconds.

#include <gtest/gtest.h>

#include <algorithm>

#include "compute/cpu/executable.h"
#include "compute/graph/plan/fusion.h"
#include "compute/program/loop_parts.h"
#include "compute/program/program_graph.h"
#include "tools/imprint/large_graphs.h"

namespace imprint {

using namespace graph;
using namespace program;

namespace {

struct Planned {
  std::int64_t nodes = 0;  // before planning
  Graph graph;
  Schedule schedule;

  double steps_per_node() const {
    return static_cast<double>(schedule.planning_steps) / static_cast<double>(nodes);
  }
};

Planned plan(const tools::LargeGraph& kind, std::int64_t nodes, const FusionOptions& options) {
  Planned planned;
  auto description = kind.make(nodes);
  EXPECT_TRUE(description.ok()) << (description.ok() ? "" : description.error().message);
  if (!description.ok()) return planned;
  auto source = build_program_graph(*description);
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.error().message);
  if (!source.ok()) return planned;
  planned.nodes = source->graph.size();
  auto schedule = fuse(source->graph, source->request, options);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  if (schedule.ok()) planned.schedule = std::move(*schedule);
  planned.graph = std::move(source->graph);
  return planned;
}

const tools::LargeGraph& kind_named(std::string_view name) {
  return *std::ranges::find(tools::large_graphs(), name, &tools::LargeGraph::name);
}

class Planning : public testing::TestWithParam<tools::LargeGraph> {
 protected:
  // Eight times the nodes may take this much more work per node: limits of a kernel begin to bind, and
  // logarithms grow.
  static constexpr double kMostGrowth = 2;

  static void expect_near_linear(const FusionOptions& options) {
    const Planned small = plan(GetParam(), 4000, options), large = plan(GetParam(), 32000, options);
    ASSERT_GT(small.schedule.planning_steps, 0);
    EXPECT_GT(large.nodes, 6 * small.nodes);
    EXPECT_LT(large.steps_per_node(), kMostGrowth * small.steps_per_node())
        << small.nodes << " nodes take " << small.schedule.planning_steps << " steps, " << large.nodes
        << " nodes " << large.schedule.planning_steps;
  }
};

TEST_P(Planning, IsNearLinearForAGpu) { expect_near_linear({}); }
TEST_P(Planning, IsNearLinearForTheCpu) { expect_near_linear(cpu::fusion_options(true)); }

INSTANTIATE_TEST_SUITE_P(LargeGraphs, Planning, testing::ValuesIn(tools::large_graphs()),
                         [](const testing::TestParamInfo<tools::LargeGraph>& kind) {
                           std::string name = kind.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// A chain of folds over rows becomes kernels of a few folds each, however long it is.
TEST(PlanningLimits, LongChainsOfRowFoldsStayInRowKernels) {
  const Planned planned = plan(kind_named("softmax-chain"), 8000, {});
  std::size_t folds = 0;
  for (const Task& task : planned.schedule.tasks) {
    EXPECT_EQ(task.kind, TaskKind::row_fold);
    EXPECT_LE(task.folds.size(), 16u);
    folds += task.folds.size();
  }
  EXPECT_EQ(folds,
            static_cast<std::size_t>(std::ranges::count_if(
                planned.graph.nodes, [](const GraphNode& node) { return node.kind() == OpKind::reduce; })));
  EXPECT_GT(folds, 2000u);
}

// A region's kernel is one shader. Beyond a size that compiles, it is cut into parts, each of many steps.
TEST(PlanningLimits, LongRecurrencesAreCutIntoRegions) {
  const auto regions = [](const Planned& planned) {
    return std::ranges::count(planned.schedule.tasks, TaskKind::region, &Task::kind);
  };
  const Planned small = plan(kind_named("lstm"), 2000, {}), large = plan(kind_named("lstm"), 10000, {});
  EXPECT_EQ(regions(small), 1);
  EXPECT_EQ(large.schedule.notes, std::vector<std::string>{});
  EXPECT_GE(regions(large), 10);
  EXPECT_LE(regions(large), large.nodes / 200);
  EXPECT_LT(large.schedule.tasks.size(), 2 * static_cast<std::size_t>(regions(large)) + 20);
  FusionOptions whole;
  whole.regions = false;
  EXPECT_GT(plan(kind_named("lstm"), 10000, whole).schedule.tasks.size(), 10 * large.schedule.tasks.size());
}

// A loop is planned once: its steps do not count.
TEST(PlanningLimits, LoopsDoNotGrowWithTheirSteps) {
  const auto steps_of_planning = [](std::int64_t length) {
    std::int64_t steps = 0;
    const Result<ProgramDescription> description = tools::looped_lstm(length);
    EXPECT_TRUE(description.ok());
    if (!description) return steps;
    const Result<ProgramSequence> sequence = parts_of_loops(*description);
    EXPECT_TRUE(sequence.ok());
    for (std::size_t i = 0; sequence && i < sequence->parts.size(); ++i) {
      auto source = build_part_graph(*sequence, i);
      EXPECT_TRUE(source.ok());
      if (!source) return steps;
      const auto schedule = fuse(source->graph, source->request, {});
      EXPECT_TRUE(schedule.ok());
      if (schedule) steps += schedule->planning_steps;
    }
    return steps;
  };
  EXPECT_EQ(steps_of_planning(2048), steps_of_planning(256));
  EXPECT_LT(steps_of_planning(2048), 20000);
}

}  // namespace
}  // namespace imprint

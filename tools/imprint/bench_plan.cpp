// Suite plan: the CPU time to plan large graphs, without a device: from tensors to a schedule of kernels.

#include <chrono>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/graph/plan/fusion.h"
#include "compute/program/loop_parts.h"
#include "compute/program/program_graph.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/large_graphs.h"

namespace imprint::tools {

namespace {

constexpr std::int64_t kNodes = 50000;
constexpr std::int64_t kLoopSteps = 2048;
constexpr int kRuns = 3;

// From tensors to kernels; a program with loops has several graphs.
Result<> plan(const ProgramDescription& description, BenchResult& result) {
  std::vector<program::ProgramGraph> sources;
  if (program::has_loops(description)) {
    IMPRINT_ASSIGN(const ProgramSequence sequence, program::parts_of_loops(description));
    for (std::size_t i = 0; i < sequence.parts.size(); ++i) {
      IMPRINT_ASSIGN(program::ProgramGraph source, program::build_part_graph(sequence, i));
      sources.push_back(std::move(source));
    }
  } else {
    IMPRINT_ASSIGN(program::ProgramGraph source, program::build_program_graph(description));
    sources.push_back(std::move(source));
  }
  result.nodes = 0;
  result.planned_kernels = 0;
  for (program::ProgramGraph& source : sources) {
    result.nodes += static_cast<std::uint64_t>(source.graph.size());
    IMPRINT_ASSIGN(const graph::Schedule schedule, graph::fuse(source.graph, source.request, {}));
    result.planned_kernels += static_cast<std::uint32_t>(schedule.tasks.size());
  }
  return {};
}

Result<BenchResult> measure_planning(const std::string& name, const Result<ProgramDescription>& made) {
  BenchResult result{.name = name, .samples_are = "plans", .samples = kRuns};
  IMPRINT_ASSIGN(const ProgramDescription description, made);
  std::vector<double> wall, cpu;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = thread_cpu_us();
    IMPRINT_CHECK(plan(description, result));
    cpu.push_back(thread_cpu_us() - cpu_start);
    wall.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  result.wall_us = spread(wall);
  result.frame_cpu_us = spread(cpu);
  return result;
}

}  // namespace

std::vector<BenchCase> plan_cases() {
  std::vector<BenchCase> cases;
  for (const LargeGraph& kind : large_graphs())
    cases.push_back({text("plan/", kind.name), [kind](BenchDevice&) {
                       return measure_planning(text("plan/", kind.name), kind.make(kNodes));
                     }});
  cases.push_back({"plan/looped-lstm", [](BenchDevice&) {
                     return measure_planning("plan/looped-lstm", looped_lstm(kLoopSteps));
                   }});
  return cases;
}

}  // namespace imprint::tools

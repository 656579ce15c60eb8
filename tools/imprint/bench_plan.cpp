// Suite plan: the CPU time to plan large graphs, without a device: from tensors to a schedule of kernels.

#include <chrono>
#include <utility>
#include <vector>

#include "compute/base/text.h"
#include "compute/graph/fusion.h"
#include "compute/program/program_graph.h"
#include "tools/imprint/bench.h"
#include "tools/imprint/large_graphs.h"

namespace imprint::tools {

namespace {

constexpr std::int64_t kNodes = 50000;
constexpr int kRuns = 3;

Result<BenchResult> measure_planning(const LargeGraph& kind) {
  BenchResult result{.name = text("plan/", kind.name), .samples_are = "plans", .samples = kRuns};
  IMPRINT_ASSIGN(const ProgramDescription description, kind.make(kNodes));
  std::vector<double> wall, cpu;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = thread_cpu_us();
    IMPRINT_ASSIGN(program::ProgramGraph source, program::build_program_graph(description));
    const std::int64_t nodes = source.graph.size();
    IMPRINT_ASSIGN(const graph::Schedule schedule, graph::fuse(source.graph, source.request, {}));
    cpu.push_back(thread_cpu_us() - cpu_start);
    wall.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    result.nodes = static_cast<std::uint64_t>(nodes);
    result.planned_kernels = static_cast<std::uint32_t>(schedule.tasks.size());
  }
  result.wall_us = spread(wall);
  result.frame_cpu_us = spread(cpu);
  return result;
}

}  // namespace

std::vector<BenchCase> plan_cases() {
  std::vector<BenchCase> cases;
  for (const LargeGraph& kind : large_graphs())
    cases.push_back({text("plan/", kind.name), [kind](BenchDevice&) { return measure_planning(kind); }});
  return cases;
}

}  // namespace imprint::tools

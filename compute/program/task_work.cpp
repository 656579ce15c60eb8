#include "compute/program/task_work.h"

#include <algorithm>

#include "compute/base/saturated.h"
#include "compute/base/text.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::program {

using namespace graph;

namespace {

std::uint64_t bytes_of(const GraphNode& node) {
  return saturated_product(static_cast<std::uint64_t>(node.element_count()), dtype_size(node.dtype));
}

}  // namespace

bool writes_state(const Schedule& schedule, const Task& task, std::span<const Variable> but) {
  return std::ranges::any_of(task.stores, [&](const Store& store) {
    if (store.place.kind != PlaceKind::variable) return false;
    const VariableState* written = schedule.variables[static_cast<std::size_t>(store.place.index)].get();
    return std::ranges::none_of(but,
                                [&](const Variable& variable) { return variable.state().get() == written; });
  });
}

void add_work(const Graph& graph, const Schedule& schedule, const Task& task, ProgramStats& stats) {
  const auto move = [&](NodeIndex node) {
    stats.bytes_moved = saturated_sum(stats.bytes_moved, bytes_of(graph[node]));
  };
  ++stats.kernels;
  for (const Read& read : task.reads) move(read.node);
  for (const Store& store : task.stores) move(store.node);
  stats.flops = saturated_sum(stats.flops, saturated(task_operations(graph, schedule, task)));
  stats.work = saturated_sum(stats.work, saturated(task_work(graph, schedule, task)));
}

void add_repeated(const ProgramStats& one, std::uint32_t times, ProgramStats& stats) {
  stats.bytes_moved = saturated_sum(stats.bytes_moved, saturated_product(one.bytes_moved, times));
  stats.flops = saturated_sum(stats.flops, saturated_product(one.flops, times));
  stats.work = saturated_sum(stats.work, saturated_product(one.work, times));
}

std::string explain_task(const Graph& graph, const Schedule& schedule, const Task& task) {
  const auto operations = saturated(task_operations(graph, schedule, task));
  return "  level " + std::to_string(task.level) + ", " + std::to_string(operations) + " operations, " +
         task_text(graph, task) + "\n";
}

KernelFigures kernel_figures(const Graph& graph, const Schedule& schedule, const Task& task,
                             bool on_matrix_units) {
  KernelFigures figures{.kind = std::string(task_kind_name(task.kind)), .text = store_text(graph, task)};
  if (!figures.text.empty()) figures.text.erase(0, 1);
  figures.choices = task.choices;
  for (const Read& read : task.reads) figures.bytes_read += bytes_of(graph[read.node]);
  for (const Store& store : task.stores) figures.bytes_written += bytes_of(graph[store.node]);
  figures.operations = saturated(task_operations(graph, schedule, task));
  if (task.region >= 0)
    for (const RegionStage& stage : schedule.regions[static_cast<std::size_t>(task.region)].stages)
      figures.stages.push_back(stage_text(graph, stage, on_matrix_units));
  return figures;
}

}  // namespace imprint::program

#include "compute/program/task_work.h"

#include <algorithm>

#include "compute/base/text.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::program {

using namespace graph;

bool writes_state(const Schedule& schedule, const Task& task, std::span<const Variable> but) {
  return std::ranges::any_of(task.stores, [&](const Store& store) {
    if (store.place.kind != PlaceKind::variable) return false;
    const VariableState* written = schedule.variables[static_cast<std::size_t>(store.place.index)].get();
    return std::ranges::none_of(but,
                                [&](const Variable& variable) { return variable.state().get() == written; });
  });
}

void add_work(const Graph& graph, const Schedule& schedule, const Task& task, ProgramStats& stats) {
  const auto bytes = [&](NodeIndex node) {
    return static_cast<std::uint64_t>(graph[node].element_count()) * dtype_size(graph[node].dtype);
  };
  ++stats.kernels;
  for (const Read& read : task.reads) stats.bytes_moved += bytes(read.node);
  for (const Store& store : task.stores) stats.bytes_moved += bytes(store.node);
  stats.flops += static_cast<std::uint64_t>(task_operations(graph, schedule, task));
}

std::string explain_task(const Graph& graph, const Schedule& schedule, const Task& task) {
  const auto operations = static_cast<std::uint64_t>(task_operations(graph, schedule, task));
  return "  level " + std::to_string(task.level) + ", " + std::to_string(operations) + " operations, " +
         task_text(graph, task) + "\n";
}

KernelFigures kernel_figures(const Graph& graph, const Schedule& schedule, const Task& task,
                             bool on_matrix_units) {
  const auto bytes = [&](NodeIndex node) {
    return static_cast<std::uint64_t>(graph[node].element_count()) * dtype_size(graph[node].dtype);
  };
  KernelFigures figures{.kind = std::string(task_kind_name(task.kind)), .text = store_text(graph, task)};
  if (!figures.text.empty()) figures.text.erase(0, 1);
  figures.choices = task.choices;
  for (const Read& read : task.reads) figures.bytes_read += bytes(read.node);
  for (const Store& store : task.stores) figures.bytes_written += bytes(store.node);
  figures.operations = static_cast<std::uint64_t>(task_operations(graph, schedule, task));
  if (task.region >= 0)
    for (const RegionStage& stage : schedule.regions[static_cast<std::size_t>(task.region)].stages)
      figures.stages.push_back(stage_text(graph, stage, on_matrix_units));
  return figures;
}

}  // namespace imprint::program

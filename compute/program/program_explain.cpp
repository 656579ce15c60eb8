#include <cstdio>

#include "compute/graph/cost.h"
#include "compute/program/program_impl.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;

std::string program::explain_task(const Graph& graph, const Schedule& schedule, const Task& task) {
  const auto operations = static_cast<std::uint64_t>(task_operations(graph, schedule, task));
  return "  level " + std::to_string(task.level) + ", " + std::to_string(operations) + " operations, " +
         task_text(graph, task) + "\n";
}

KernelFigures program::kernel_figures(const Graph& graph, const Schedule& schedule, const Task& task,
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

std::vector<ScheduleFigures> Program::Impl::schedule_figures() const {
  std::vector<ScheduleFigures> figures;
  for (const Part& part : parts) {
    figures.push_back(std::move(part.impl->schedule_figures().front()));
    figures.back().repeat = part.repeat;
  }
  if (!parts.empty()) return figures;
  figures.push_back({source.name, 1, {}, schedule.notes});
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    const DispatchSource& dispatch = dispatches[i];
    DispatchFigures one{barrier_before[i] != 0,
                        dispatch.groups_x * dispatch.groups_y,
                        dispatch.invocations,
                        {},
                        dispatch.glsl};
    for (std::int32_t t : dispatch.tasks)
      one.kernels.push_back(kernel_figures(source.graph, schedule,
                                           schedule.tasks[static_cast<std::size_t>(t)],
                                           dispatch.region_on_matrix_units));
    figures.back().dispatches.push_back(std::move(one));
  }
  return figures;
}

std::string Program::Impl::explain() const {
  std::string text;
  char line[320];
  std::snprintf(line, sizeof line,
                "program %s: %u dispatches of %u kernels, %u barriers, arena %llu bytes (%llu without "
                "reuse), %llu bytes moved, %llu operations\n",
                source.name.c_str(), stats.dispatches, stats.kernels, stats.barriers,
                static_cast<unsigned long long>(stats.arena_bytes),
                static_cast<unsigned long long>(stats.unplanned_bytes),
                static_cast<unsigned long long>(stats.bytes_moved),
                static_cast<unsigned long long>(stats.flops));
  text += line;
  for (const std::string& note : schedule.notes) text += "  note: " + note + "\n";
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    const DispatchSource& dispatch = dispatches[i];
    std::snprintf(line, sizeof line, "  %2zu%s %u workgroups, %zu buffers\n", i,
                  barrier_before[i] ? " | barrier |" : "", dispatch.groups_x * dispatch.groups_y,
                  dispatch.buffers.size());
    text += line;
    for (std::int32_t t : dispatch.tasks) {
      text += "     " + explain_task(source.graph, schedule, schedule.tasks[static_cast<std::size_t>(t)]);
    }
  }
  for (const Part& part : parts) text += "  " + std::to_string(part.repeat) + " x " + part.impl->explain();
  return text;
}

}  // namespace imprint

#include <cstdio>

#include "compute/graph/cost.h"
#include "compute/program/program_impl.h"

namespace imprint {

std::string explain_task(const Graph& graph, const Schedule& schedule, const Task& task) {
  char head[64];
  std::snprintf(head, sizeof head, "  level %d, %.0f operations, ", task.level, task_operations(graph, schedule, task));
  return head + task_text(graph, task) + "\n";
}

std::string Program::Impl::explain() const {
  std::string text;
  char line[320];
  std::snprintf(line, sizeof line, "program %s: %u dispatches of %u kernels, %u barriers, arena %llu bytes (%llu without reuse), %llu bytes moved, %llu operations\n",
                source.name.c_str(), stats.dispatches, stats.kernels, stats.barriers, static_cast<unsigned long long>(stats.arena_bytes),
                static_cast<unsigned long long>(stats.unplanned_bytes), static_cast<unsigned long long>(stats.bytes_moved), static_cast<unsigned long long>(stats.flops));
  text += line;
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    const DispatchSource& dispatch = dispatches[i];
    std::snprintf(line, sizeof line, "  %2zu%s %u workgroups, %zu buffers\n", i, barrier_before[i] ? " | barrier |" : "", dispatch.groups_x * dispatch.groups_y,
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

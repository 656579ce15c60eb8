#include <cstdio>

#include "compute/program/program_impl.h"
#include "compute/program/task_work.h"

namespace imprint {

using namespace graph;
using namespace kernels;
using namespace program;

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

#pragma once
// Describes the work of a schedule's task, in figures and in text.

#include <span>
#include <string>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"
#include "compute/program/program.h"

namespace imprint::program {

// Whether the task writes a variable that `except` does not list.
bool writes_state(const graph::Schedule& schedule, const graph::Task& task, std::span<const Variable> except);
// Adds a kernel with its bytes, operations and work.
void add_work(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task,
              ProgramStats& stats);
// Adds the bytes, operations and work of as many runs.
void add_repeated(const ProgramStats& one, std::uint32_t times, ProgramStats& stats);
// One line.
std::string explain_task(const graph::Graph& graph, const graph::Schedule& schedule, const graph::Task& task);
KernelFigures kernel_figures(const graph::Graph& graph, const graph::Schedule& schedule,
                             const graph::Task& task, bool on_matrix_units = false);

}  // namespace imprint::program

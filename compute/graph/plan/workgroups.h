#pragma once
// Chooses how many invocations work together where a kernel leaves that open: in folds that a workgroup or
// the lanes of a row share, and in large maps.

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Sets Task::invocations and Task::row_lanes of tasks whose members are known.
void choose_workgroups(const Graph& graph, const FusionOptions& options, Schedule& schedule);

}  // namespace imprint::graph

#pragma once
// Lets kernels overwrite a program's state early, and store small outputs late: nothing waits for either.
// Late readers of old content read copies that were taken early.

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {

// Adds to a graph, before fusion:
// - a second evaluation of each small update's value for its other readers, computed from snapshots of the
//   old content;
// - snapshots of small variables that are overwritten and that all rows of a caller's kernel read;
// - a second evaluation of each small output that others read, for its store alone;
// - for updates by rows, a second copy of the row numbers (GraphUpdate::own_rows), if a few operations
//   compute them from memory that exists before the run.
void read_state_early(Graph& graph, FusionRequest& request);

// The same behind regions, after they are split: what kernels behind all products read of small variables,
// such as an estimate that scales a penalty, becomes a snapshot for them. The variable's update may be known
// long before, and would wait for these kernels. Regions read the variable itself and wait for nothing.
void read_state_behind_regions(Graph& graph, FusionRequest& request, RegionSplit& split);

}  // namespace imprint::graph

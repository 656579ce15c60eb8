#pragma once
// Lets kernels overwrite a program's state early, and store small outputs late: nothing waits for either.
// Late readers of old content read copies that were taken early.

#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"

namespace imprint::graph {

// Adds to a graph, before fusion:
// - a second evaluation of each small update's value for its other readers, computed from snapshots of the
//   old content;
// - snapshots of small variables that are overwritten and that all rows of a caller's kernel read;
// - a second evaluation of each small output that others read, for its store alone;
// - for updates by rows, a second copy of the row numbers (GraphUpdate::own_rows), if a few operations
//   compute them from memory that exists before the run.
void read_state_early(Graph& graph, FusionRequest& request);

}  // namespace imprint::graph

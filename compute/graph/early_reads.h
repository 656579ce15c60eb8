#pragma once
// What lets a program's kernels write the state it leaves behind at once, without waiting for everybody who
// reads the old content: readers that come late read copies which were taken early.

#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"

namespace imprint::graph {

// Adds to a graph, before it is fused:
//   - values of small updates once more for their other readers, which compute them from snapshots of the old
//   content;
//   - snapshots of small variables which are overwritten and which all rows of a caller's kernel read;
//   - for updates by rows, the row numbers once more (GraphUpdate::own_rows), where they are a few operations
//   on memory that is there from the start.
void read_state_early(Graph& graph, FusionRequest& request);

}  // namespace imprint::graph

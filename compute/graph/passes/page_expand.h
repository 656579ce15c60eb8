#pragma once
// Replaces operations where others suit a device better: sorts, long scans and large scatters by smaller
// pages, sums of overlapping windows by products (window_products.h). The operation keeps its meaning,
// derivative and CPU function; only the schedule changes.

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"

namespace imprint::graph {

// Renumbers the nodes. Errors: those of the expansions.
Result<> expand_pages(Graph& graph, FusionRequest& request, const FusionOptions& options);

}  // namespace imprint::graph

#pragma once
// Reductions with too few outputs for the device and very many terms each, in two steps: partial results of
// equal stretches of the terms, and the fold of those, always in the same order.

#include "compute/graph/fusion_options.h"
#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"
#include "compute/graph/region.h"

namespace imprint::graph {

// Behind split_regions and split_tails, whose folds it leaves alone. Renumbers the nodes.
void split_long_folds(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options);

}  // namespace imprint::graph

#pragma once
// Splits reductions that have many terms but too few outputs to fill the device. Step one folds equal
// stretches of the terms into partial results; step two folds those. The order is always the same.

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {

// Call after split_regions and split_tails; leaves their folds alone. Renumbers the nodes.
void split_long_folds(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options);

}  // namespace imprint::graph

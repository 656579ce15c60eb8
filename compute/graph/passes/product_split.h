#pragma once
// Splits products that have many terms but too few output tiles to fill the device, such as weight gradients
// of a large batch. Step one computes partial products of equal stretches of the terms in parallel; step two
// sums them. The order is always the same.

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {

// Call after split_regions, whose products it leaves alone, and before split_tails. Renumbers the nodes.
void split_deep_products(Graph& graph, FusionRequest& request, RegionSplit& split,
                         const FusionOptions& options);

}  // namespace imprint::graph

#pragma once
// Products with too few tiles of outputs for the device and very many terms each, such as the weight
// gradients of a large batch, in two steps: partial products of equal stretches of the terms, side by side,
// and their sum, always in the same order.

#include "compute/graph/fusion_options.h"
#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"
#include "compute/graph/region.h"

namespace imprint::graph {

// Behind split_regions, whose products it leaves alone, and in front of split_tails. Renumbers the nodes.
void split_deep_products(Graph& graph, FusionRequest& request, RegionSplit& split,
                         const FusionOptions& options);

}  // namespace imprint::graph

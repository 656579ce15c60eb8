#pragma once
// Mixed precision, after Micikevicius et al., Mixed Precision Training, 2018: products read float16 where
// that serves them and sum in float32; everything else stays as it is.
//
// Narrowed are both float32 operands of a contraction (matmul, and what is made of one: linear layers,
// convolutions, the products of their gradients)
//   - outside row-local regions, where it is large enough for tiles (FusionOptions::product_operations);
//   - within one, where the region runs on matrix units (region.h, suits_matrix_units).
// Not narrowed: sums of products, whatever is elementwise, folds, softmax, norms, losses, and variables:
// weights, gradients and an optimiser's state are float32, and what a product reads of a weight is a copy
// rounded in each run. Nor the products of other regions, which would pay for the rounding with more
// arithmetic and gain nothing.

#include <string>
#include <vector>

#include "compute/graph/fusion_options.h"
#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"

namespace imprint::graph {

// Renumbers the nodes. Gives a line of what it did, for the log.
std::string narrow_products(Graph& graph, FusionRequest& request, const FusionOptions& options);

}  // namespace imprint::graph

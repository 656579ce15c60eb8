#pragma once
// Values that several kernels compute, and whose bits must be equal in all of them.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"

namespace imprint::graph {

// Per node: whether kernels compute it without fused multiply-adds. A comparison of a value with a fold of
// the same value (the gradient of a maximum asks which elements attain it) is right only if both kernels
// compute equal bits, and a compiler fuses a product and a sum in one kernel and not in the other. The value
// and all that it is computed from are exact then, back to memory. So is what a page with marks loads: one of
// its workgroups may compute again what another one did. materialized: as in Schedule. Linear in
// the nodes and edges; counts its steps.
std::vector<std::uint8_t> exact_values(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                       const FusionOptions& options);

}  // namespace imprint::graph

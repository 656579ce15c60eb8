#pragma once
// Single numbers that get memory in place of the values that are computed from them.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"

namespace imprint::graph {

// A clipped gradient is the gradient times a factor, a function of a sum over all gradients. If the step that
// reads it also waits for another such number, such as whether all gradients are finite, it would be stored
// and read again. The factor is stored instead, at the same time. Others read their factors in their own
// kernel. materialized, forced, region_of, row_group_of: per node.
void keep_numbers(const Graph& graph, const std::vector<std::uint8_t>& forced,
                  const std::vector<std::int32_t>& region_of, const std::vector<std::int32_t>& row_group_of,
                  const FusionOptions& options, std::vector<std::uint8_t>& materialized);

}  // namespace imprint::graph

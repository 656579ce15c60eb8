#pragma once
// For kernels that process a value row by row along its first axis: what evaluating one row reads.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Read::aligned for rows: aligned means that row i of the value reads only row i of that memory.
// Each node once, ascending. materialized: per node, as in Schedule. A memory leaf reads nothing.
std::vector<Read> reads_by_row(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                               NodeIndex index);

}  // namespace imprint::graph

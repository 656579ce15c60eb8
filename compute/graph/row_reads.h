#pragma once
// Kernels that take a value row by row, along its first axis: what the evaluation of one row reads.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// As Read::aligned, but of rows: whether row i of the value reads, of the memory named, only row i. Each node
// once, ascending. materialized: per node, as in Schedule. A memory leaf reads nothing.
std::vector<Read> reads_by_row(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                               NodeIndex index);

}  // namespace imprint::graph

#pragma once
// Lower bounds of the shared memory that a region's workgroup needs, before its values are placed. They spare
// plans that could not succeed.

#include <cstdint>
#include <vector>

#include "compute/graph/schedule/region.h"

namespace imprint::graph {

// Region::row_block, halved until the rows of products that lie between two stages could fit; 0: not even one
// row. Linear in the values. stage_of and last_reader of `scratch`: of the region's values.
std::int32_t rows_that_could_fit(const Graph& graph, const Region& region, const RegionScratch& scratch,
                                 const FusionOptions& options);

// Per stage: the most floats that lie in shared memory between two stages up to it, at least. Linear in the
// values, which have strides.
std::vector<std::int64_t> floats_before_stages(const Graph& graph, const Region& region,
                                               const RegionScratch& scratch);

// Updates the same for floats that are there from the start to stage `last`.
void add_from_start(std::vector<std::int64_t>& floats_before_stages, std::size_t last, std::int64_t floats);

// Floats from a row of a value in shared memory to the next. Odd, counted in vectors if there are any:
// neighbouring rows then lie in different banks.
inline std::int64_t stride_of(const Region& region, std::int64_t width) {
  return width == 1 ? 1 : region.vectors ? ((width + 3) / 4 | 1) * 4 : width | 1;
}

// Whether the shape is one matrix, with axes of one element before it or without.
bool is_matrix(const Shape& shape);
// Whether both shapes are, with as many rows and columns.
bool are_same_matrix(const Shape& a, const Shape& b);

// Whether every reader of the weights of parallel networks reads, for one network, only that network's
// weights. consumers: of the graph.
bool reads_own_network(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
                       const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex weights);

}  // namespace imprint::graph

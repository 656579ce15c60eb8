// Decides which regions run on matrix units.

#include <algorithm>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {
namespace {

// Columns of a product: one subgroup keeps a block of rows of its sums in registers.
constexpr std::int64_t kMostColumns = 128;
// Weights in a workgroup's memory, as float16; the remaining memory is for rows.
constexpr std::int64_t kMostWeightBytes = 24576;

std::int64_t padded(std::int64_t extent) {
  return (extent + kMatrixExtent - 1) / kMatrixExtent * kMatrixExtent;
}

}  // namespace

bool suits_matrix_units(const Graph& graph, const RegionMembers& members, std::int32_t region,
                        std::span<const NodeIndex> nodes, const FusionOptions& options) {
  const RegionNodes& own = members.regions[static_cast<std::size_t>(region)];
  if (!options.matrix_units || own.rows < options.region_narrow_rows || own.groups > 1 ||
      options.region_shared_bytes < kMatrixSharedBytes)
    return false;
  std::int64_t weight_bytes = 0;
  for (NodeIndex i : nodes) {
    const GraphNode& node = graph[i];
    if (node.kind() == OpKind::elementwise || node.kind() == OpKind::view || node.kind() == OpKind::generate)
      continue;
    if (node.op != Op::matmul || members.row_axis[at(i)] != 0) return false;
    const std::int64_t depth = fold_length(graph, i), columns = node.shape[1];
    weight_bytes += 2 * padded(depth) * (padded(columns) + 8);
    if (columns > kMostColumns || members.region_of[at(node.inputs[1])] == region) return false;
  }
  return weight_bytes > 0 && weight_bytes <= kMostWeightBytes;
}

}  // namespace imprint::graph

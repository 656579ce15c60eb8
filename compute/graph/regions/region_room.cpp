#include "compute/graph/regions/region_room.h"

#include <algorithm>

namespace imprint::graph {
namespace {

// A value lies in shared memory from its own stage to the last that reads it. Adds size(value) of all values
// between two stages. Returns, per stage, the most before it.
template <class Size>
std::vector<std::int64_t> most_before_stages(const Region& region, const RegionScratch& scratch,
                                             const Size& size) {
  std::vector<std::int64_t> most(region.stages.size() + 1, 0);  // first the change at each stage
  for (const RegionValue& value : region.values) {
    const std::int32_t first = scratch.stage_of[at(value.node)], last = scratch.last_reader[at(value.node)];
    if (last <= first) continue;
    most[at(first) + 1] += size(value);
    most[at(last) + 1] -= size(value);
  }
  std::int64_t now = 0, peak = 0;
  for (std::int64_t& one : most) one = peak = std::max(peak, now += one);
  return most;
}

}  // namespace

std::int32_t rows_that_could_fit(const Graph& graph, const Region& region, const RegionScratch& scratch,
                                 const FusionOptions& options) {
  const auto width = [&](const RegionValue& value) {
    return value.row_axis >= 0 && graph[value.node].op == Op::matmul ? value.width : 0;
  };
  const std::int64_t row = most_before_stages(region, scratch, width).back();
  std::int32_t rows = region.row_block;
  while (rows > 0 && 4 * row * rows > options.region_shared_bytes) rows /= 2;
  return rows;
}

std::vector<std::int64_t> floats_before_stages(const Graph& graph, const Region& region,
                                               const RegionScratch& scratch) {
  return most_before_stages(region, scratch, [&](const RegionValue& value) {
    return dtype_is_float(graph[value.node].dtype) ? value.stride * value.height : 0;
  });
}

void add_from_start(std::vector<std::int64_t>& floats_before_stages, std::size_t last, std::int64_t floats) {
  for (std::size_t stage = 1; stage < floats_before_stages.size(); ++stage)
    floats_before_stages[stage] = stage <= last
                                      ? floats_before_stages[stage] + floats
                                      : std::max(floats_before_stages[stage], floats_before_stages[last]);
}

bool is_matrix(const Shape& shape) {
  return shape.rank() >= 2 && shape.element_count() == shape[shape.rank() - 2] * shape[shape.rank() - 1];
}

bool are_same_matrix(const Shape& a, const Shape& b) {
  return is_matrix(a) && is_matrix(b) && a[a.rank() - 2] == b[b.rank() - 2] &&
         a[a.rank() - 1] == b[b.rank() - 1];
}

bool reads_own_network(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
                       const std::vector<std::vector<NodeIndex>>& consumers, NodeIndex weights) {
  return std::ranges::all_of(consumers[at(weights)], [&](NodeIndex consumer) {
    const GraphNode& node = graph[consumer];
    if (node.op == Op::matmul || (schedule.materialized[at(consumer)] && split.region_of[at(consumer)] < 0))
      return true;
    return (node.kind() == OpKind::elementwise || (node.op == Op::permute && node.ints[0] == 0)) &&
           reads_own_network(graph, schedule, split, consumers, consumer);
  });
}

}  // namespace imprint::graph

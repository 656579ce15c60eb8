#include "compute/graph/regions/row_reads.h"

#include <algorithm>
#include <utility>

#include "compute/graph/axis_map.h"
#include "compute/graph/number_set.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::graph {
namespace {

constexpr int kNone = -1;

// The axis of the input that holds the node's rows; kNone if a row needs more than one row there.
int row_axis_of_input(const Graph& graph, NodeIndex index, std::size_t slot, int axis) {
  const GraphNode& node = graph[index];
  const AxisSource source = axis_source(node, graph[node.inputs[slot]].shape, slot, axis);
  return source.is_same() ? source.axis : kNone;
}

}  // namespace

std::vector<Read> reads_by_row(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                               NodeIndex index) {
  constexpr std::int64_t kAxes = Shape::kMaxRank + 1;  // with kNone
  std::vector<Read> reads;
  std::vector<std::pair<NodeIndex, int>> stack;
  NumberSet seen, unaligned;
  const auto visit_inputs = [&](NodeIndex node, int axis) {
    for (std::size_t slot = 0; slot < graph[node].inputs.size(); ++slot)
      stack.emplace_back(graph[node].inputs[slot],
                         axis == kNone ? kNone : row_axis_of_input(graph, node, slot, axis));
  };
  if (is_memory_leaf(graph[index])) return {};
  visit_inputs(index, graph[index].shape.rank() > 0 ? 0 : kNone);
  while (!stack.empty()) {
    const auto [node, axis] = stack.back();
    stack.pop_back();
    if (!seen.insert(node * kAxes + axis + 1)) continue;
    if (materialized[static_cast<std::size_t>(node)] == 0) {
      visit_inputs(node, axis);
      continue;
    }
    reads.push_back({node, true});
    if (axis != 0 || graph[node].shape[0] != graph[index].shape[0]) unaligned.insert(node);
  }
  std::ranges::sort(reads, {}, &Read::node);
  reads.erase(std::ranges::unique(reads, {}, &Read::node).begin(), reads.end());
  for (Read& read : reads) read.aligned = !unaligned.contains(read.node);
  return reads;
}

}  // namespace imprint::graph

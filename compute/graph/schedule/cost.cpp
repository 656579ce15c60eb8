#include "compute/graph/schedule/cost.h"

#include <algorithm>
#include <utility>

#include "compute/graph/number_set.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {

std::int64_t fold_length(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  const auto whole = [&](std::int64_t length) {
    return node.blocks > 0 ? (length + node.blocks - 1) / node.blocks : length;
  };
  const auto input_shape = [&](std::size_t slot) -> const Shape& { return graph[node.inputs[slot]].shape; };
  if (node.kind() == OpKind::reduce) {
    std::int64_t length = 1;
    for (std::int64_t axis : node.ints) length *= input_shape(0)[static_cast<int>(axis)];
    return whole(length);
  }
  switch (node.op) {
    case Op::matmul:
      return whole(input_shape(0)[input_shape(0).rank() - 1]);
    case Op::scatter_add:
      return input_shape(1)[static_cast<int>(node.ints[0])];
    case Op::unwindow:
      return node.ints[1];
    default:
      return 1;
  }
}

double op_cost(const Graph& graph, NodeIndex index) {
  return op_info(graph[index].op).cost * static_cast<double>(fold_length(graph, index));
}

double evaluations_per_element(const Graph& graph, NodeIndex index, std::size_t slot) {
  const GraphNode& node = graph[index];
  const double own = static_cast<double>(std::max<std::int64_t>(1, node.element_count()));
  const double input = static_cast<double>(graph[node.inputs[slot]].element_count());
  switch (node.op) {
    case Op::pad:
    case Op::concat:
      return std::min(1.0, input / own);
    case Op::scatter_add:
      return slot == 0 ? 1.0 : static_cast<double>(fold_length(graph, index));
    case Op::random_uniform:
    case Op::random_permutation:
      return 4;
    case Op::page:
      return node.source->page->loads * input / own;
    case Op::page_output:
      return 0;
    default:
      return static_cast<double>(fold_length(graph, index));
  }
}

namespace {

// Many short folds whose results are neighbours where their terms are: invocations of a map read those
// together, while the lanes of a group would read them far apart.
bool folds_many_columns(const Graph& graph, NodeIndex index) {
  constexpr std::int64_t kMany = 8192, kShort = 64;
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::reduce || node.element_count() < kMany || fold_length(graph, index) > kShort)
    return false;
  std::int64_t behind = 1;
  for (int axis = static_cast<int>(node.ints.back()) + 1; axis < node.shape.rank(); ++axis)
    behind *= node.shape[axis];
  return behind >= kFoldColumns;
}

}  // namespace

bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op == Op::scatter_add || node.op == Op::unwindow) return false;
  const std::int64_t length = fold_length(graph, index);
  const std::int64_t outputs = node.element_count();
  if (node.blocks > 0 || wants_lanes(graph, index) || length < options.group_fold_length) return false;
  if (folds_many_columns(graph, index)) return false;
  // Lanes read innermost axes contiguously for a few outputs, however many outputs there are.
  return outputs <= options.group_fold_outputs ||
         (folds_innermost(graph, index) && outputs * length >= options.row_fold_elements);
}

bool folds_innermost(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::reduce) return false;
  const Shape& source = graph[node.inputs[0]].shape;
  for (int axis = static_cast<int>(node.ints.front()); axis < source.rank(); ++axis)
    if (source[axis] != 1 && std::ranges::find(node.ints, axis) == node.ints.end()) return false;
  return true;
}

bool wants_lanes(const Graph& graph, NodeIndex index) {
  constexpr std::int64_t kMost = 1024;
  const GraphNode& node = graph[index];
  if (node.op != Op::reduce_sum || node.blocks > 0 || node.element_count() != 1 ||
      fold_length(graph, index) > kMost || node.shape.rank() != 1)
    return false;
  const GraphNode& source = graph[node.inputs[0]];
  const auto is_tail = [](const GraphNode& entry) {
    return entry.op == Op::reduce_sum && entry.blocks > 0 && entry.shape.rank() == 1;
  };
  return is_tail(source) ||
         (source.op == Op::concat &&
          std::ranges::all_of(source.inputs, [&](NodeIndex input) { return is_tail(graph[input]); }));
}

bool wants_columns(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (!tensor::is_plain_fold(node.op)) return false;
  const std::int64_t length = fold_length(graph, index), outputs = node.element_count();
  if (!node.has_tails && (length < options.column_fold_length || outputs < kFoldColumns ||
                          outputs > options.group_fold_outputs * 16))
    return false;
  if (wants_lanes(graph, index)) return false;
  // Only outermost axes, and not all axes.
  return static_cast<std::size_t>(node.ints.back()) + 1 == node.ints.size() &&
         static_cast<int>(node.ints.size()) < node.shape.rank();
}

bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op != Op::matmul) return false;
  const int rank = node.shape.rank();
  return node.element_count() * fold_length(graph, index) >= options.product_operations &&
         node.shape[rank - 2] >= 16 && node.shape[rank - 1] >= 16;
}

double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                              NodeIndex index) {
  // Counts each value once per evaluation: a kernel keeps what it has computed.
  std::vector<std::pair<NodeIndex, double>> stack{{index, 1.0}};
  NumberSet seen;
  double operations = 0;
  while (!stack.empty()) {
    const auto [node, times] = stack.back();
    stack.pop_back();
    if (!seen.insert(node)) continue;
    const OpKind kind = graph[node].kind();
    const double length = static_cast<double>(fold_length(graph, node));
    if (kind == OpKind::elementwise && graph[node].op != Op::cast)
      operations += times;
    else if (kind == OpKind::contract)
      operations += 2 * length * times;
    else if (kind == OpKind::reduce || kind == OpKind::scatter || kind == OpKind::scan)
      operations += length * times;
    for (std::size_t slot = 0; slot < graph[node].inputs.size(); ++slot)
      if (const NodeIndex input = graph[node].inputs[slot]; !materialized[at(input)])
        stack.emplace_back(input, times * evaluations_per_element(graph, node, slot));
  }
  return operations;
}

double task_operations(const Graph& graph, const Schedule& schedule, const Task& task) {
  double operations = 0;
  if (task.kind != TaskKind::row_fold) {
    for (NodeIndex member : task.members)
      operations += static_cast<double>(graph[member].element_count()) *
                    operations_per_element(graph, schedule.materialized, member);
    return operations;
  }
  // Counts every value once, however many consumers it has.
  std::vector<NodeIndex> stack(task.members.begin(), task.members.end());
  NumberSet members, seen;
  for (NodeIndex member : task.members) members.insert(member);
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    const bool is_read = schedule.materialized[at(node)] && !members.contains(node);
    if (is_read || !seen.insert(node)) continue;
    const OpKind kind = graph[node].kind();
    const double times = static_cast<double>(graph[node].element_count() *
                                             (kind == OpKind::contract ? 2 : 1) * fold_length(graph, node));
    if ((kind == OpKind::elementwise && graph[node].op != Op::cast) || kind == OpKind::contract ||
        kind == OpKind::reduce || kind == OpKind::scatter)
      operations += times;
    stack.insert(stack.end(), graph[node].inputs.begin(), graph[node].inputs.end());
  }
  return operations;
}

}  // namespace imprint::graph

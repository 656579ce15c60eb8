#include "compute/graph/cost.h"

#include <algorithm>

namespace imprint {
namespace {

std::size_t at(NodeIndex index) { return static_cast<std::size_t>(index); }

// Folds pull all that they read into every kernel that evaluates them, so they are evaluated again less readily.
double recompute_limit(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  return fold_length(graph, index) >= 4 ? options.recompute_limit / 16 : options.recompute_limit;
}

bool is_literal(const GraphNode& node) { return node.op == Op::full || node.op == Op::iota; }

// A value is given memory at the op that computes it, not at the views behind it.
NodeIndex without_views(const Graph& graph, NodeIndex index) {
  while (graph[index].kind() == OpKind::view) index = graph[index].inputs[0];
  return index;
}

// Distinct nodes that would be computed inside this one, up to a limit.
std::int32_t inline_size(const Graph& graph, NodeIndex index, const std::vector<std::uint8_t>& has_memory, std::int32_t limit) {
  std::vector<NodeIndex> stack{index};
  std::vector<NodeIndex> seen;
  while (!stack.empty() && static_cast<std::int32_t>(seen.size()) <= limit) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    for (NodeIndex input : graph[node].inputs)
      if (!has_memory[at(input)]) stack.push_back(input);
  }
  return static_cast<std::int32_t>(seen.size());
}

}  // namespace

std::int64_t fold_length(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  const auto input_shape = [&](std::size_t slot) -> const Shape& { return graph[node.inputs[slot]].shape; };
  switch (node.op) {
    case Op::reduce_sum: case Op::reduce_prod: case Op::reduce_max: case Op::reduce_min: case Op::argmax: case Op::argmin: {
      std::int64_t length = 1;
      for (std::int64_t axis : node.ints) length *= input_shape(0)[static_cast<int>(axis)];
      return length;
    }
    case Op::matmul: return input_shape(0)[input_shape(0).rank() - 1];
    case Op::scatter_add: return input_shape(1)[static_cast<int>(node.ints[0])];
    case Op::unwindow: return node.ints[1];
    default: return 1;
  }
}

double op_cost(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  switch (node.op) {
    case Op::constant: case Op::input: case Op::variable: return 1;
    case Op::full: case Op::iota: return 0;
    case Op::random_uniform: return 70;
    case Op::exp: case Op::log: case Op::sin: case Op::cos: case Op::tan: case Op::sigmoid: case Op::div: case Op::recip: case Op::sqrt: return 6;
    case Op::tanh: case Op::expm1: case Op::log1p: case Op::sinh: case Op::cosh: case Op::asinh: case Op::acosh: case Op::atanh: return 12;
    case Op::erf: case Op::pow: case Op::asin: case Op::acos: case Op::atan: case Op::atan2: case Op::remainder: case Op::fmod: return 16;
    case Op::reshape: return 3;  // divisions of the index
    case Op::permute: case Op::expand: case Op::slice: case Op::window: return 0.5;
    case Op::pad: case Op::concat: case Op::gather: case Op::take: return 3;
    case Op::matmul: return 2.0 * static_cast<double>(fold_length(graph, index));
    case Op::scatter_add: case Op::unwindow: return 3.0 * static_cast<double>(fold_length(graph, index));
    case Op::reduce_sum: case Op::reduce_prod: case Op::reduce_max: case Op::reduce_min: case Op::argmax: case Op::argmin:
      return static_cast<double>(fold_length(graph, index));
    default: return 1;
  }
}

double evaluations_per_element(const Graph& graph, NodeIndex index, std::size_t slot) {
  const GraphNode& node = graph[index];
  const double own = static_cast<double>(std::max<std::int64_t>(1, node.element_count()));
  const double input = static_cast<double>(graph[node.inputs[slot]].element_count());
  switch (node.op) {
    case Op::pad: case Op::concat: return std::min(1.0, input / own);
    case Op::scatter_add: return slot == 0 ? 1.0 : static_cast<double>(fold_length(graph, index));
    case Op::random_uniform: return 4;
    default: return static_cast<double>(fold_length(graph, index));
  }
}

bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op == Op::scatter_add || node.op == Op::unwindow) return false;
  const std::int64_t length = fold_length(graph, index);
  const std::int64_t outputs = node.element_count();
  return length >= options.group_fold_length && outputs <= options.group_fold_outputs;
}

bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options) {
  const GraphNode& node = graph[index];
  if (node.op != Op::matmul) return false;
  const int rank = node.shape.rank();
  return node.element_count() * fold_length(graph, index) >= options.matmul_tile_operations && node.shape[rank - 2] >= 16 && node.shape[rank - 1] >= 16;
}

double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex index) {
  // Each value once an evaluation: a kernel keeps what it has computed.
  std::vector<std::pair<NodeIndex, double>> stack{{index, 1.0}};
  std::vector<NodeIndex> seen;
  double operations = 0;
  while (!stack.empty()) {
    const auto [node, times] = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, node) != seen.end()) continue;
    seen.push_back(node);
    const OpKind kind = graph[node].kind();
    const double length = static_cast<double>(fold_length(graph, node));
    if (kind == OpKind::elementwise && graph[node].op != Op::cast) operations += times;
    else if (kind == OpKind::contract) operations += 2 * length * times;
    else if (kind == OpKind::reduce || kind == OpKind::scatter || kind == OpKind::scan) operations += length * times;
    for (std::size_t slot = 0; slot < graph[node].inputs.size(); ++slot)
      if (const NodeIndex input = graph[node].inputs[slot]; !materialized[at(input)])
        stack.emplace_back(input, times * evaluations_per_element(graph, node, slot));
  }
  return operations;
}

std::vector<std::uint8_t> choose_materialized(const Graph& graph, const std::vector<std::uint8_t>& forced, const FusionOptions& options) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::uint8_t> memory(count, 0);
  const auto consumers = graph.consumers();

  if (!options.fuse) {
    for (NodeIndex i = 0; i < graph.size(); ++i) {
      const GraphNode& node = graph[i];
      memory[at(i)] = is_memory_leaf(node) || forced[at(i)] || (node.kind() != OpKind::view && !is_literal(node));
    }
    return memory;
  }

  // Forward: the cost of one element of each node, taking for granted memory where even the direct consumers ask for it.
  std::vector<double> cost(count, 0);
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const GraphNode& node = graph[i];
    // The lanes of a group share the fold.
    const double lanes = wants_group(graph, i, options) ? 64.0 : 1.0;
    const auto element_cost = [&] {
      double sum = op_cost(graph, i) / lanes;
      for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
        const std::size_t input = at(node.inputs[slot]);
        sum += evaluations_per_element(graph, i, slot) / lanes * (memory[input] ? 1.0 : cost[input]);
      }
      return sum;
    };
    cost[at(i)] = element_cost();
    if (cost[at(i)] > options.serial_limit)
      for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
        const NodeIndex source = without_views(graph, node.inputs[slot]);
        const double share = evaluations_per_element(graph, i, slot) / lanes * cost[at(source)];
        if (!memory[at(source)] && !is_literal(graph[source]) && share > options.serial_limit / 2 && cost[at(source)] > 16) {
          memory[at(source)] = 1;
          for (NodeIndex view = node.inputs[slot]; view != source; view = graph[view].inputs[0]) cost[at(view)] = 2;
        }
      }
    cost[at(i)] = element_cost();
    double asked = 0;
    for (NodeIndex consumer : consumers[at(i)]) {
      const GraphNode& user = graph[consumer];
      for (std::size_t slot = 0; slot < user.inputs.size(); ++slot)
        if (user.inputs[slot] == i) asked += evaluations_per_element(graph, consumer, slot) * static_cast<double>(user.element_count());
    }
    const double again = std::max(0.0, asked - static_cast<double>(node.element_count()));
    memory[at(i)] = is_memory_leaf(node) || forced[at(i)] || node.op == Op::cumsum || wants_group(graph, i, options) || wants_tiles(graph, i, options) ||
                    (!is_literal(node) && node.kind() != OpKind::view && again * cost[at(i)] > recompute_limit(graph, i, options)) ||
                    inline_size(graph, i, memory, options.node_limit) > options.node_limit;
  }

  // Backward: how often each node is really evaluated, consumers of consumers included, now that it is known where that chain is cut.
  std::vector<double> evaluations(count, 0);
  for (NodeIndex i = graph.size() - 1; i >= 0; --i) {
    const GraphNode& node = graph[i];
    const double own = static_cast<double>(node.element_count());
    if (!memory[at(i)] && !is_literal(node) && node.kind() != OpKind::view)
      memory[at(i)] = (evaluations[at(i)] - own) * cost[at(i)] > recompute_limit(graph, i, options);
    const double evaluated = memory[at(i)] ? own : evaluations[at(i)];
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      evaluations[at(node.inputs[slot])] += evaluated * evaluations_per_element(graph, i, slot);
  }
  return memory;
}

}  // namespace imprint

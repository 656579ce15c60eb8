#include "compute/graph/plan/kept_numbers.h"

#include <algorithm>

#include "compute/graph/number_set.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::graph {
namespace {

constexpr int kMostAround = 64;  // nodes around one value

class NumberKeeper {
 public:
  NumberKeeper(const Graph& graph, std::vector<std::uint8_t>& materialized)
      : graph_(graph), materialized_(materialized), readers_(graph.nodes.size()) {
    for (NodeIndex i = 0; i < graph.size(); ++i)
      for (NodeIndex input : graph[i].inputs) readers_[at(input)].push_back(i);
  }

  void visit(NodeIndex i) {
    std::vector<NodeIndex> numbers;
    for (NodeIndex input : graph_[i].inputs) {
      const NodeIndex source = behind_views(input);
      if (materialized_[at(source)]) continue;
      if (!depends_on_fold(source)) return;
      numbers.push_back(source);
    }
    if (numbers.empty() || !waits_for_number(i)) return;
    for (NodeIndex number : numbers) materialized_[at(number)] = 1;
    materialized_[at(i)] = 0;
  }

 private:
  NodeIndex behind_views(NodeIndex node) const {
    while (graph_[node].kind() == OpKind::view) node = graph_[node].inputs[0];
    return node;
  }

  // Whether it is one number, computed element by element from folds.
  bool depends_on_fold(NodeIndex number) const {
    if (graph_[number].kind() != OpKind::elementwise || graph_[number].element_count() != 1) return false;
    std::vector<NodeIndex> stack{number};
    for (int count = 0; !stack.empty() && count < kMostAround; ++count) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      if (graph_[node].kind() == OpKind::reduce) return true;
      stack.insert(stack.end(), graph_[node].inputs.begin(), graph_[node].inputs.end());
    }
    return false;
  }

  // Whether what its elementwise readers compute needs another such number that is stored.
  bool waits_for_number(NodeIndex i) const {
    std::vector<NodeIndex> stack{i};
    NumberSet seen;
    for (int count = 0; !stack.empty() && count < kMostAround; ++count) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      for (const NodeIndex reader : readers_[at(node)]) {
        const OpKind kind = graph_[reader].kind();
        if ((kind != OpKind::elementwise && kind != OpKind::view) ||
            graph_[reader].element_count() != graph_[i].element_count() || !seen.insert(reader))
          continue;
        if (std::ranges::any_of(graph_[reader].inputs, [&](NodeIndex input) {
              const NodeIndex source = behind_views(input);
              return materialized_[at(source)] && depends_on_fold(source);
            }))
          return true;
        stack.push_back(reader);
      }
    }
    return false;
  }

  const Graph& graph_;
  std::vector<std::uint8_t>& materialized_;
  std::vector<std::vector<NodeIndex>> readers_;
};

class RowValues {
 public:
  RowValues(const Graph& graph, const Uses& uses, const std::vector<std::int32_t>& region_of,
            const std::vector<std::int32_t>& row_group_of)
      : graph_(graph), uses_(uses), region_of_(region_of), row_group_of_(row_group_of) {}

  // Memory goes to the op that computes a value, not to a view.
  std::vector<ShiftedValue> keep(const std::vector<std::uint8_t>& forced,
                                 std::vector<std::uint8_t>& memory) const {
    std::vector<ShiftedValue> shifted;
    std::vector<std::uint8_t> asked = forced;
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (row_group_of_[at(i)] < 0) continue;
      const std::int64_t outside =
          std::ranges::count_if(uses_[i], [&](const Uses::Use& use) { return is_outside(i, use.consumer); });
      const NodeIndex source = shift_source(i);
      const bool is_shifted = source >= 0 && (outside > 0 || asked[at(i)]) && !forced[at(i)];
      if (is_read_in_place(i) && (is_shifted || (!asked[at(i)] && outside == 1 && is_cheap_function(i)))) {
        for (NodeIndex input : graph_[i].inputs) asked[at(input)] = 1;
        if (is_shifted) shifted.push_back({i, source});
        continue;
      }
      if (outside > 0) asked[at(i)] = 1;
      if (graph_[i].kind() == OpKind::view && asked[at(i)]) asked[at(graph_[i].inputs[0])] = 1;
      memory[at(i)] = asked[at(i)] && graph_[i].kind() != OpKind::view;
    }
    return shifted;
  }

 private:
  bool is_outside(NodeIndex index, NodeIndex other) const {
    return row_group_of_[at(other)] != row_group_of_[at(index)];
  }

  // Whether outside of the group only elementwise operations of the same shape read the value.
  bool is_read_in_place(NodeIndex index) const {
    return std::ranges::all_of(uses_[index], [&](const Uses::Use& use) {
      const GraphNode& reader = graph_[use.consumer];
      return !is_outside(index, use.consumer) ||
             (reader.kind() == OpKind::elementwise && reader.shape == graph_[index].shape &&
              region_of_[at(use.consumer)] < 0);
    });
  }

  // A number of each row, of the group.
  bool is_number(NodeIndex index, NodeIndex input) const {
    return !is_outside(index, input) && graph_[input].op == Op::expand &&
           !is_outside(index, graph_[input].inputs[0]);
  }

  // Whether the value is a cheap function of one value of the group, and of numbers of the rows. To store it
  // beside the other would be as much traffic again: such as twice the distance from the mean, in the
  // gradient of a variance.
  bool is_cheap_function(NodeIndex index) const {
    constexpr double kCheap = 2;  // operations
    const Shape& shape = graph_[index].shape;
    if (graph_[index].kind() != OpKind::elementwise || op_cost(graph_, index) > kCheap) return false;
    NodeIndex value = -1;
    for (NodeIndex input : graph_[index].inputs) {
      if (is_outside(index, input)) return false;
      if (graph_[input].op == Op::expand) {
        if (!is_number(index, input)) return false;
        continue;
      }
      if (value >= 0 && value != input) return false;
      value = input;
    }
    return value >= 0 && graph_[value].shape == shape && graph_[value].kind() == OpKind::elementwise &&
           std::ranges::any_of(uses_[value], [&](const Uses::Use& use) {
             return use.consumer != index && !is_outside(index, use.consumer);
           });
  }

  // ShiftedValue::source; -1: the value is something else.
  NodeIndex shift_source(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (node.op != Op::sub && node.op != Op::add) return -1;
    NodeIndex source = -1;
    int numbers = 0;
    for (NodeIndex input : node.inputs) {
      const GraphNode& operand = graph_[input];
      if (is_number(index, input))
        ++numbers;
      else if (is_outside(index, input) && operand.kind() != OpKind::view && operand.dtype == node.dtype &&
               operand.op != Op::full && operand.op != Op::iota && region_of_[at(input)] < 0)
        source = input;
    }
    return numbers == 1 ? source : -1;
  }

  const Graph& graph_;
  const Uses& uses_;
  const std::vector<std::int32_t>&region_of_, &row_group_of_;
};

}  // namespace

void keep_numbers(const Graph& graph, const std::vector<std::uint8_t>& forced,
                  const std::vector<std::int32_t>& region_of, const std::vector<std::int32_t>& row_group_of,
                  const FusionOptions& options, std::vector<std::uint8_t>& materialized) {
  if (!options.fuse) return;
  NumberKeeper keeper(graph, materialized);
  for (NodeIndex i = 0; i < graph.size(); ++i)
    if (materialized[at(i)] && !forced[at(i)] && region_of[at(i)] < 0 && row_group_of[at(i)] < 0 &&
        graph[i].kind() == OpKind::elementwise && graph[i].element_count() > 1)
      keeper.visit(i);
  count_steps(options, graph.size());
}

std::vector<ShiftedValue> keep_row_values(const Graph& graph, const Uses& uses,
                                          const std::vector<std::uint8_t>& forced,
                                          const std::vector<std::int32_t>& region_of,
                                          const std::vector<std::int32_t>& row_group_of,
                                          std::vector<std::uint8_t>& memory) {
  return RowValues(graph, uses, region_of, row_group_of).keep(forced, memory);
}

}  // namespace imprint::graph

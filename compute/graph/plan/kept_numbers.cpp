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

}  // namespace imprint::graph

#include "compute/graph/schedule/exact_values.h"

#include "compute/base/at.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {

using namespace tensor;

namespace {

bool compares(Op op) {
  return op == Op::equal || op == Op::not_equal || op == Op::less || op == Op::less_equal ||
         op == Op::greater || op == Op::greater_equal;
}

// Whether `node` folds `source`, through views and in any number of steps.
bool is_fold_of(const Graph& graph, NodeIndex node, NodeIndex source, const FusionOptions& options) {
  for (bool is_folded = false;; node = graph[node].inputs[0]) {
    count_steps(options, 1);
    if (is_folded && node == source) return true;
    const OpKind kind = graph[node].kind();
    if (kind != OpKind::view && kind != OpKind::reduce) return false;
    is_folded |= kind == OpKind::reduce;
  }
}

}  // namespace

std::vector<std::uint8_t> exact_values(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                       const FusionOptions& options) {
  std::vector<std::uint8_t> exact(graph.nodes.size(), 0);
  std::vector<NodeIndex> stack;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (graph[i].op == Op::page && graph[i].source->page->marks > 0)
      stack.insert(stack.end(), graph[i].inputs.begin(), graph[i].inputs.end());
    if (!compares(graph[i].op)) continue;
    for (const int side : {0, 1}) {
      const NodeIndex value = graph.without_views(graph[i].inputs[at(side)]);
      if (!materialized[at(value)] && is_fold_of(graph, graph[i].inputs[at(1 - side)], value, options))
        stack.push_back(value);
    }
  }
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    count_steps(options, 1);
    if (materialized[at(node)] || exact[at(node)]) continue;
    exact[at(node)] = 1;
    stack.insert(stack.end(), graph[node].inputs.begin(), graph[node].inputs.end());
  }
  return exact;
}

}  // namespace imprint::graph

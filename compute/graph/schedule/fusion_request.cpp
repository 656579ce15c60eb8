#include "compute/graph/schedule/fusion_request.h"

#include <algorithm>
#include <set>

#include "compute/graph/schedule/request_queries.h"

namespace imprint::graph {

void FusionRequest::renumber(const std::vector<NodeIndex>& index) {
  for (GraphOutput& output : outputs) output.node = index[at(output.node)];
  for (GraphUpdate& update : updates) {
    update.value = index[at(update.value)];
    if (update.rows >= 0) update.rows = index[at(update.rows)];
    if (update.own_rows >= 0) update.own_rows = index[at(update.own_rows)];
  }
  for (NodeIndex& input : inputs)
    if (input >= 0) input = index[at(input)];
}

bool learns(const Graph& graph, const FusionRequest& request) {
  if (request.updates.empty()) return false;
  std::set<const VariableState*> read;
  for (const GraphNode& node : graph.nodes)
    if (node.op == Op::variable) read.insert(node.source->variable.get());
  const auto changes_what_is_read = [&](const GraphUpdate& update) {
    return update.variable < 0 || update.rows >= 0 ||
           read.contains(request.variables[at(update.variable)].get());
  };
  if (std::ranges::any_of(request.updates, changes_what_is_read)) return true;
  // The leaf that the value consists of; -1: it is computed.
  const auto leaf_of = [&](NodeIndex node) {
    while (graph[node].kind() == OpKind::view || graph[node].op == Op::cast) node = graph[node].inputs[0];
    return graph[node].kind() == OpKind::leaf ? node : -1;
  };
  return std::ranges::any_of(graph.nodes, [&](const GraphNode& node) {
    if (node.op != Op::matmul) return false;
    const NodeIndex left = leaf_of(node.inputs[0]), right = leaf_of(node.inputs[1]);
    const auto is = [&](NodeIndex leaf, Op op) { return leaf >= 0 && graph[leaf].op == op; };
    return (is(left, Op::variable) && !is(right, Op::constant)) ||
           (is(right, Op::variable) && !is(left, Op::constant));
  });
}

bool is_result(const FusionRequest& request, NodeIndex node) {
  return std::ranges::find(request.outputs, node, &GraphOutput::node) != request.outputs.end() ||
         std::ranges::find(request.updates, node, &GraphUpdate::value) != request.updates.end();
}

}  // namespace imprint::graph

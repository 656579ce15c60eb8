#include "compute/graph/early_reads.h"

#include <algorithm>
#include <utility>

#include "compute/graph/cost.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kSmall = 4096;  // elements
constexpr int kFewOperations = 8;

bool is_overwritten(const FusionRequest& request, const GraphNode& variable) {
  return std::ranges::any_of(request.updates, [&](const GraphUpdate& update) {
    return request.variables[static_cast<std::size_t>(update.variable)] == variable.source->variable;
  });
}

// Adds a snapshot of each marked variable and redirects all its readers to it. marked: per node.
void take_snapshots(Graph& graph, FusionRequest& request, const std::vector<std::uint8_t>& marked) {
  std::vector<GraphNode> nodes;
  std::vector<NodeIndex> index;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    GraphNode node = graph[i];
    for (NodeIndex& input : node.inputs) input = index[at(input)];
    nodes.push_back(std::move(node));
    if (marked[at(i)]) {
      const GraphNode& variable = nodes.back();
      const auto leaf = static_cast<NodeIndex>(nodes.size()) - 1;
      GraphNode copy{Op::cast, variable.dtype, variable.shape, {leaf}, {}, {}, variable.source};
      copy.is_snapshot = true;
      nodes.push_back(std::move(copy));
    }
    index.push_back(static_cast<NodeIndex>(nodes.size()) - 1);
  }
  graph.nodes = std::move(nodes);
  request.renumber(index);
  for (NodeIndex& root : graph.roots) root = index[at(root)];
}

void snapshot_for_custom_kernels(Graph& graph, FusionRequest& request) {
  std::vector<std::uint8_t> marked(graph.nodes.size(), 0);
  for (const GraphNode& node : graph.nodes)
    if (node.op == Op::custom)
      for (NodeIndex input : node.inputs)
        if (graph[input].op == Op::variable && graph[input].shape.rank() == 1 &&
            graph[input].element_count() <= kSmall && is_overwritten(request, graph[input]))
          marked[at(input)] = 1;
  if (std::ranges::find(marked, 1) != marked.end()) take_snapshots(graph, request, marked);
}

// Operations to compute the node from memory that exists before the run. More than kFewOperations if it
// cannot be computed element by element.
int operations_from_leaves(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  if (is_memory_leaf(node) || node.op == Op::full) return 0;
  if (node.kind() != OpKind::elementwise && node.op != Op::reshape && node.op != Op::expand)
    return kFewOperations + 1;
  int count = 1;
  for (NodeIndex input : node.inputs) {
    count += operations_from_leaves(graph, input);
    if (count > kFewOperations) break;
  }
  return count;
}

void repeat_row_numbers(Graph& graph, FusionRequest& request) {
  for (GraphUpdate& update : request.updates) {
    if (update.rows < 0 || operations_from_leaves(graph, update.rows) > kFewOperations) continue;
    if (is_memory_leaf(graph[update.rows])) continue;  // kernels read it directly
    GraphNode own = graph[update.rows];
    graph.nodes.push_back(std::move(own));
    update.own_rows = graph.size() - 1;
  }
}

// Whether computing the value needs more than its own elements of memory.
bool waits_for_others(const Graph& graph, NodeIndex index) {
  const GraphNode& node = graph[index];
  if (is_memory_leaf(node)) return false;
  if (node.kind() != OpKind::elementwise && node.op != Op::reshape && node.kind() != OpKind::generate)
    return true;
  return std::ranges::any_of(node.inputs, [&](NodeIndex input) { return waits_for_others(graph, input); });
}

// Handles variables such as a counter of steps that were not skipped. Everything reads the counter, and its
// update depends on values known only at the end. Readers of the updated value would wait for the kernel that
// stores it. Instead they compute it from an early copy of the old content, so the store can run in parallel.
void free_small_updates(Graph& graph, FusionRequest& request) {
  const auto consumers = graph.consumers();
  std::vector<std::uint8_t> snapshot(graph.nodes.size(), 0);
  std::vector<std::size_t> freed;
  for (std::size_t u = 0; u < request.updates.size(); ++u) {
    const GraphUpdate& update = request.updates[u];
    const GraphNode& node = graph[update.value];
    if (update.rows >= 0 || node.kind() != OpKind::elementwise || node.element_count() > kSmall ||
        consumers[at(update.value)].empty())
      continue;
    const bool is_wide = std::ranges::any_of(consumers[at(update.value)], [&](NodeIndex consumer) {
      return graph[consumer].kind() == OpKind::view ||
             graph[consumer].element_count() > node.element_count() || node.element_count() == 1;
    });
    if (!is_wide || !waits_for_others(graph, update.value)) continue;
    freed.push_back(u);
    for (NodeIndex i = 0; i < graph.size(); ++i)
      if (graph[i].op == Op::variable &&
          graph[i].source->variable == request.variables[static_cast<std::size_t>(update.variable)])
        snapshot[at(i)] = 1;
  }
  if (freed.empty()) return;

  take_snapshots(graph, request, snapshot);
  for (std::size_t u : freed) {
    GraphNode own = graph[request.updates[u].value];
    graph.nodes.push_back(std::move(own));
    request.updates[u].value = graph.size() - 1;
  }
}

}  // namespace

void read_state_early(Graph& graph, FusionRequest& request) {
  free_small_updates(graph, request);
  snapshot_for_custom_kernels(graph, request);
  repeat_row_numbers(graph, request);
}

}  // namespace imprint::graph

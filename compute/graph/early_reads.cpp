#include "compute/graph/early_reads.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compute/graph/cost.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kSmall = 4096;  // elements
constexpr int kFewOperations = 8;

// The variables that the program overwrites.
std::unordered_set<const VariableState*> overwritten_variables(const FusionRequest& request) {
  std::unordered_set<const VariableState*> variables;
  for (const GraphUpdate& update : request.updates)
    variables.insert(request.variables[static_cast<std::size_t>(update.variable)].get());
  return variables;
}

// Writes the graph again. append(node, index, nodes) adds what stands for a node, and returns its new number;
// index has those of the nodes before it. Returns all of them.
template <class Append>
std::vector<NodeIndex> write_again(Graph& graph, FusionRequest& request, const Append& append) {
  std::vector<GraphNode> nodes;
  std::vector<NodeIndex> index;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const NodeIndex now = append(i, index, nodes);
    index.push_back(now);
  }
  graph.nodes = std::move(nodes);
  request.renumber(index);
  for (NodeIndex& root : graph.roots) root = index[at(root)];
  return index;
}

NodeIndex last_of(const std::vector<GraphNode>& nodes) { return static_cast<NodeIndex>(nodes.size()) - 1; }

// Adds a snapshot of each marked variable and redirects all its readers to it. marked: per node.
void take_snapshots(Graph& graph, FusionRequest& request, const std::vector<std::uint8_t>& marked) {
  write_again(
      graph, request, [&](NodeIndex i, const std::vector<NodeIndex>& index, std::vector<GraphNode>& nodes) {
        GraphNode node = graph[i];
        for (NodeIndex& input : node.inputs) input = index[at(input)];
        nodes.push_back(std::move(node));
        if (!marked[at(i)]) return last_of(nodes);
        const GraphNode& variable = nodes.back();
        GraphNode copy{Op::cast, variable.dtype, variable.shape, {last_of(nodes)}, {}, {}, variable.source};
        copy.is_snapshot = true;
        nodes.push_back(std::move(copy));
        return last_of(nodes);
      });
}

void snapshot_for_custom_kernels(Graph& graph, FusionRequest& request) {
  const auto overwritten = overwritten_variables(request);
  std::vector<std::uint8_t> marked(graph.nodes.size(), 0);
  for (const GraphNode& node : graph.nodes)
    if (node.op == Op::custom)
      for (NodeIndex input : node.inputs)
        if (graph[input].op == Op::variable && graph[input].shape.rank() == 1 &&
            graph[input].element_count() <= kSmall &&
            overwritten.contains(graph[input].source->variable.get()))
          marked[at(input)] = 1;
  if (std::ranges::find(marked, 1) != marked.end()) take_snapshots(graph, request, marked);
}

// Operations to compute the node from memory that exists before the run. More than `most` if there are more
// or if it cannot be computed element by element. Visits at most `most` nodes and their inputs.
int operations_from_leaves(const Graph& graph, NodeIndex index, int most) {
  const GraphNode& node = graph[index];
  if (is_memory_leaf(node) || node.op == Op::full) return 0;
  if (most < 1 || (node.kind() != OpKind::elementwise && node.op != Op::reshape && node.op != Op::expand))
    return most + 1;
  int count = 1;
  for (NodeIndex input : node.inputs) {
    count += operations_from_leaves(graph, input, most - count);
    if (count > most) break;
  }
  return count;
}

void repeat_row_numbers(Graph& graph, FusionRequest& request) {
  for (GraphUpdate& update : request.updates) {
    if (update.rows < 0 || operations_from_leaves(graph, update.rows, kFewOperations) > kFewOperations)
      continue;
    if (is_memory_leaf(graph[update.rows])) continue;  // kernels read it directly
    GraphNode own = graph[update.rows];
    graph.nodes.push_back(std::move(own));
    update.own_rows = graph.size() - 1;
  }
}

// Per node: whether computing the value needs more than its own elements of memory.
std::vector<std::uint8_t> nodes_that_wait(const Graph& graph) {
  std::vector<std::uint8_t> waits(graph.nodes.size(), 0);
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const GraphNode& node = graph[i];
    if (is_memory_leaf(node)) continue;
    const bool by_element =
        node.kind() == OpKind::elementwise || node.op == Op::reshape || node.kind() == OpKind::generate;
    waits[at(i)] = !by_element ||
                   std::ranges::any_of(node.inputs, [&](NodeIndex input) { return waits[at(input)] != 0; });
  }
  return waits;
}

// Whether other kernels would wait for the one that stores this small value: some read it at many elements,
// and computing it needs more than its own elements of memory.
bool holds_others_up(const Graph& graph, NodeIndex index, const std::vector<NodeIndex>& consumers,
                     const std::vector<std::uint8_t>& waits) {
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::elementwise || node.element_count() > kSmall || !waits[at(index)]) return false;
  return std::ranges::any_of(consumers, [&](NodeIndex consumer) {
    return graph[consumer].kind() == OpKind::view || node.element_count() == 1 ||
           graph[consumer].element_count() > node.element_count();
  });
}

// Handles variables such as a counter of steps that were not skipped. Everything reads the counter, and its
// update depends on values known only at the end. Readers of the updated value would wait for the kernel that
// stores it. Instead they compute it from an early copy of the old content, so the store can run in parallel.
void free_small_updates(Graph& graph, FusionRequest& request) {
  const auto consumers = graph.consumers();
  const std::vector<std::uint8_t> waits = nodes_that_wait(graph);
  std::vector<std::uint8_t> snapshot(graph.nodes.size(), 0);
  std::unordered_multimap<const VariableState*, NodeIndex> nodes_of_variable;
  for (NodeIndex i = 0; i < graph.size(); ++i)
    if (graph[i].op == Op::variable) nodes_of_variable.emplace(graph[i].source->variable.get(), i);
  std::vector<std::size_t> freed;
  for (std::size_t u = 0; u < request.updates.size(); ++u) {
    const GraphUpdate& update = request.updates[u];
    if (update.rows >= 0 || !holds_others_up(graph, update.value, consumers[at(update.value)], waits))
      continue;
    freed.push_back(u);
    const auto [first, last] =
        nodes_of_variable.equal_range(request.variables[static_cast<std::size_t>(update.variable)].get());
    for (auto read = first; read != last; ++read) snapshot[at(read->second)] = 1;
  }
  if (freed.empty()) return;

  take_snapshots(graph, request, snapshot);
  for (std::size_t u : freed) {
    GraphNode own = graph[request.updates[u].value];
    graph.nodes.push_back(std::move(own));
    request.updates[u].value = graph.size() - 1;
  }
}

// Handles outputs such as a gradient's norm, which every step of an optimiser reads. Its readers compute it
// again where that is cheap, and do not wait for the kernel that stores it.
void free_small_outputs(Graph& graph, FusionRequest& request) {
  const auto consumers = graph.consumers();
  const std::vector<std::uint8_t> waits = nodes_that_wait(graph);
  std::vector<std::uint8_t> doubled(graph.nodes.size(), 0);
  std::vector<NodeIndex> moved(request.outputs.size(), -1);
  for (std::size_t o = 0; o < request.outputs.size(); ++o) {
    const NodeIndex output = request.outputs[o].node, value = graph.without_reshape(output);
    if (output != value && graph[output].inputs[0] != value) continue;
    std::vector<NodeIndex> readers = consumers[at(value)];
    if (output != value && consumers[at(output)].empty()) std::erase(readers, output);
    if (!holds_others_up(graph, value, readers, waits)) continue;
    doubled[at(value)] = doubled[at(output)] = 1;
    moved[o] = output;
  }
  if (std::ranges::find(doubled, 1) == doubled.end()) return;

  // The numbers of the first evaluations; the second lie behind them.
  const std::vector<NodeIndex> index = write_again(
      graph, request, [&](NodeIndex i, const std::vector<NodeIndex>& before, std::vector<GraphNode>& nodes) {
        GraphNode first = graph[i], second = graph[i];
        for (NodeIndex& input : first.inputs) input = before[at(input)];
        const bool reads_second = first.op == Op::reshape && doubled[at(graph[i].inputs[0])];
        for (NodeIndex& input : second.inputs) input = before[at(input)] + (reads_second ? 1 : 0);
        nodes.push_back(doubled[at(i)] && consumers[at(i)].empty() ? second : first);
        const NodeIndex now = last_of(nodes);
        if (doubled[at(i)]) nodes.push_back(std::move(second));
        return now;
      });
  for (std::size_t o = 0; o < moved.size(); ++o)
    if (moved[o] >= 0) request.outputs[o].node = index[at(moved[o])] + 1;
}

}  // namespace

void read_state_early(Graph& graph, FusionRequest& request) {
  free_small_updates(graph, request);
  free_small_outputs(graph, request);
  snapshot_for_custom_kernels(graph, request);
  repeat_row_numbers(graph, request);
}

}  // namespace imprint::graph

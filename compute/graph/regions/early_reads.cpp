#include "compute/graph/regions/early_reads.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/split_rewriter.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kSmall = 4096;  // elements
constexpr int kFewOperations = 8;
constexpr std::size_t kMostEarly = 64;      // values that are computed from one variable and from memory
constexpr std::size_t kMostVariables = 32;  // that are read late, the smallest first

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

// Facts about a graph for the choice of values to compute twice.
struct Readers {
  Readers(const Graph& graph, const FusionRequest& request)
      : consumers(graph.consumers()), waits(nodes_that_wait(graph)), updates(graph.nodes.size(), 0) {
    for (const GraphUpdate& update : request.updates) updates[at(update.value)] = 1;
  }

  std::vector<std::vector<NodeIndex>> consumers;
  std::vector<std::uint8_t> waits, updates;  // per node; updates: whether it is a variable's new value
};

// Whether a value of one element only becomes the new value of one other variable, such as a bias and its
// slow copy. Both are then in one kernel.
bool ends_in_one_update(const Graph& graph, NodeIndex index, const Readers& readers) {
  constexpr std::size_t kMost = 8;  // values on the way
  std::vector<NodeIndex> found{index};
  int updates = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i > 0) updates += readers.updates[at(found[i])];
    for (const NodeIndex consumer : readers.consumers[at(found[i])]) {
      const GraphNode& node = graph[consumer];
      if (node.element_count() != 1 || (node.kind() != OpKind::elementwise && node.op != Op::reshape))
        return false;
      if (std::ranges::find(found, consumer) == found.end()) found.push_back(consumer);
    }
    if (found.size() > kMost) return false;
  }
  return updates == 1;
}

// Whether other kernels would wait for the one that stores this small value: some read it at many elements,
// and computing it needs more than its own elements of memory.
bool holds_others_up(const Graph& graph, NodeIndex index, const std::vector<NodeIndex>& consumers,
                     const Readers& readers) {
  const GraphNode& node = graph[index];
  if (node.kind() != OpKind::elementwise || node.element_count() > kSmall || !readers.waits[at(index)])
    return false;
  if (node.element_count() == 1) return !consumers.empty() && !ends_in_one_update(graph, index, readers);
  return std::ranges::any_of(consumers, [&](NodeIndex consumer) {
    return graph[consumer].kind() == OpKind::view || graph[consumer].element_count() > node.element_count();
  });
}

// Handles variables such as a counter of steps that were not skipped. Everything reads the counter, and its
// update depends on values known only at the end. Readers of the updated value would wait for the kernel that
// stores it. Instead they compute it from an early copy of the old content, so the store can run in parallel.
void free_small_updates(Graph& graph, FusionRequest& request) {
  if (request.updates.empty()) return;
  const Readers readers(graph, request);
  std::vector<std::uint8_t> snapshot(graph.nodes.size(), 0);
  std::unordered_multimap<const VariableState*, NodeIndex> nodes_of_variable;
  for (NodeIndex i = 0; i < graph.size(); ++i)
    if (graph[i].op == Op::variable) nodes_of_variable.emplace(graph[i].source->variable.get(), i);
  std::vector<std::size_t> freed;
  for (std::size_t u = 0; u < request.updates.size(); ++u) {
    const GraphUpdate& update = request.updates[u];
    if (update.rows >= 0 ||
        !holds_others_up(graph, update.value, readers.consumers[at(update.value)], readers))
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
  const auto is_small = [&](const GraphOutput& output) {
    const GraphNode& value = graph[graph.without_reshape(output.node)];
    return value.kind() == OpKind::elementwise && value.element_count() <= kSmall;
  };
  if (std::ranges::none_of(request.outputs, is_small)) return;
  const Readers all(graph, request);
  const std::vector<std::vector<NodeIndex>>& consumers = all.consumers;
  std::vector<std::uint8_t> doubled(graph.nodes.size(), 0);
  std::vector<NodeIndex> moved(request.outputs.size(), -1);
  for (std::size_t o = 0; o < request.outputs.size(); ++o) {
    const NodeIndex output = request.outputs[o].node, value = graph.without_reshape(output);
    if (output != value && graph[output].inputs[0] != value) continue;
    std::vector<NodeIndex> readers = consumers[at(value)];
    if (output != value && consumers[at(output)].empty()) std::erase(readers, output);
    if (!holds_others_up(graph, value, readers, all)) continue;
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

// Finds the values that need snapshots because kernels behind regions read them: small variables that the
// program overwrites, and what is computed from these and from memory alone.
class LateReads {
 public:
  LateReads(const Graph& graph, const FusionRequest& request, const RegionSplit& split)
      : graph_(graph),
        split_(split),
        consumers_(graph.consumers()),
        behind_(graph.nodes.size(), 0),
        before_(graph.nodes.size(), 0),
        kept_(graph.nodes.size(), -1) {
    find_sides();
    std::unordered_map<const VariableState*, NodeIndex> value_of;
    for (const GraphUpdate& update : request.updates)
      if (update.rows < 0)
        value_of.emplace(request.variables[static_cast<std::size_t>(update.variable)].get(), update.value);
    std::vector<NodeIndex> small;
    for (NodeIndex i = 0; i < graph.size(); ++i)
      if (graph[i].op == Op::variable && graph[i].element_count() <= kSmall &&
          value_of.contains(graph[i].source->variable.get()))
        small.push_back(i);
    std::ranges::stable_sort(small, {}, [&](NodeIndex i) { return graph[i].element_count(); });
    if (small.size() > kMostVariables) small.resize(kMostVariables);
    for (const NodeIndex variable : small)
      keep(variable, value_of.at(graph[variable].source->variable.get()));
  }

  bool any() const {
    return std::ranges::any_of(kept_, [](NodeIndex kept) { return kept >= 0; });
  }
  bool is_kept(NodeIndex node) const { return kept_[at(node)] == node; }
  bool is_view_of_kept(NodeIndex node) const { return kept_[at(node)] >= 0 && !is_kept(node); }
  // Whether the reader takes the snapshot of an input that is kept or shows what is.
  bool reads_snapshot(NodeIndex reader, NodeIndex input) const {
    return kept_[at(input)] >= 0 && is_late(reader, kept_[at(input)]);
  }

 private:
  bool in_region(NodeIndex node) const { return split_.region_of[at(node)] >= 0; }
  bool is_view(NodeIndex node) const { return graph_[node].kind() == OpKind::view; }

  void find_sides() {
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      for (const NodeIndex input : graph_[i].inputs)
        behind_[at(i)] |= static_cast<std::uint8_t>(in_region(input) || behind_[at(input)]);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i)
      for (const NodeIndex input : graph_[i].inputs)
        before_[at(input)] |= static_cast<std::uint8_t>(in_region(i) || before_[at(i)]);
  }

  // Behind regions, or larger than the value and in a kernel with what is.
  bool is_late(NodeIndex reader, NodeIndex value) const {
    return !in_region(reader) && !before_[at(reader)] &&
           (behind_[at(reader)] || graph_[reader].element_count() > graph_[value].element_count());
  }

  NodeIndex without_views(NodeIndex node) const {
    while (is_view(node)) node = graph_[node].inputs[0];
    return node;
  }

  // The variable, values of at most its size from it and from memory, and views of these.
  std::vector<NodeIndex> early_values(NodeIndex variable) const {
    std::vector<NodeIndex> early{variable};
    for (std::size_t i = 0; i < early.size() && early.size() < kMostEarly; ++i)
      for (const NodeIndex reader : consumers_[at(early[i])]) {
        const bool is_small = graph_[reader].kind() == OpKind::elementwise &&
                              graph_[reader].element_count() <= graph_[variable].element_count();
        if ((is_small || is_view(reader)) && !behind_[at(reader)] && !in_region(reader) &&
            std::ranges::find(early, reader) == early.end())
          early.push_back(reader);
      }
    return early;
  }

  std::vector<std::uint8_t> parts_of(NodeIndex value) const {
    std::vector<std::uint8_t> parts(graph_.nodes.size(), 0);
    parts[at(value)] = 1;
    for (NodeIndex i = value; i >= 0; --i)
      if (parts[at(i)])
        for (const NodeIndex input : graph_[i].inputs) parts[at(input)] = 1;
    return parts;
  }

  // Whether a new value that is there before regions would wait for a reader behind them.
  bool holds_up(NodeIndex reader, NodeIndex value) const {
    return behind_[at(reader)] && !behind_[at(value)] && !in_region(value);
  }

  // value: what the variable becomes. It comes after its own parts in any case.
  void keep(NodeIndex variable, NodeIndex value) {
    const std::vector<NodeIndex> early = early_values(variable);
    std::vector<NodeIndex> read_late;
    const std::vector<std::uint8_t> parts = parts_of(value);
    for (const NodeIndex node : early)
      for (const NodeIndex reader : consumers_[at(node)])
        if (is_late(reader, without_views(node)) && !parts[at(reader)] &&
            std::ranges::find(early, reader) == early.end() &&
            (graph_[reader].element_count() > graph_[variable].element_count() || holds_up(reader, value)))
          read_late.push_back(node);
    for (NodeIndex node : read_late) {
      const NodeIndex source = without_views(node);
      for (; is_view(node); node = graph_[node].inputs[0]) kept_[at(node)] = source;
      kept_[at(source)] = source;
    }
  }

  const Graph& graph_;
  const RegionSplit& split_;
  std::vector<std::vector<NodeIndex>> consumers_;
  std::vector<std::uint8_t> behind_, before_;  // per node: it depends on a region, a region on it
  std::vector<NodeIndex> kept_;  // per node: the value that it is or shows, if late readers need it
};

}  // namespace

void read_state_early(Graph& graph, FusionRequest& request) {
  free_small_updates(graph, request);
  free_small_outputs(graph, request);
  snapshot_for_custom_kernels(graph, request);
  repeat_row_numbers(graph, request);
}

void read_state_behind_regions(Graph& graph, FusionRequest& request, RegionSplit& split) {
  if (split.regions.empty()) return;
  const LateReads reads(graph, request, split);
  if (!reads.any()) return;
  std::vector<NodeIndex> second(graph.nodes.size(), -1);  // per old node: its snapshot, or a view of one
  SplitRewriter rewriter(graph, request, split);
  rewriter.run([&](NodeIndex old, GraphNode node) {  // node: with renumbered inputs
    if (reads.is_view_of_kept(old)) {
      GraphNode view = node;
      view.inputs[0] = second[at(graph[old].inputs[0])];
      second[at(old)] = rewriter.add(std::move(view), old);
      return rewriter.add(std::move(node), old);
    }
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      if (const NodeIndex input = graph[old].inputs[slot]; reads.reads_snapshot(old, input))
        node.inputs[slot] = second[at(input)];
    GraphNode copy{Op::cast, node.dtype, node.shape, {}, {}, {}, node.source};
    const NodeIndex now = rewriter.add(std::move(node), old);
    if (reads.is_kept(old)) {
      copy.inputs = {now};
      copy.is_snapshot = true;
      second[at(old)] = rewriter.add(std::move(copy), old);
    }
    return now;
  });
}

}  // namespace imprint::graph

#include "compute/graph/passes/recompute.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "compute/tensor/build.h"
#include "compute/tensor/composites/composites.h"

namespace imprint::graph {

namespace {

constexpr std::string_view kWaitingLabel = "recomputed from";

// A temporary of the plan.
struct KeptValue {
  NodeIndex node = -1;  // in the graph before fusion; -1: it has none
  std::uint64_t bytes = 0;
  std::int32_t first = 0, last_early = 0, first_late = INT32_MAX, last = 0;  // levels
  bool is_late() const { return first_late != INT32_MAX; }
};

class PieceRecomputation {
 public:
  PieceRecomputation(Graph& graph, FusionRequest& request, const Graph& planned, const Schedule& schedule)
      : graph_(graph), request_(request), planned_(planned), schedule_(schedule) {}

  std::uint64_t run(int pieces) {
    find_values();
    choose_cuts(pieces);
    const std::uint64_t bytes = choose_dropped();
    if (bytes == 0) return 0;
    classify();
    nodes_ = graph_.nodes;
    clone_.assign(graph_.nodes.size(), -1);
    for (std::size_t piece = 0; piece < cuts_.size(); ++piece) clone_piece(static_cast<std::int32_t>(piece));
    redirect_late();
    sort_nodes();
    return bytes;
  }

 private:
  // ---- what the plan keeps ----

  // Fusion rewrites the graph; a node keeps its source.
  void find_sources() {
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (const auto [known, fresh] = of_source_.try_emplace(graph_[i].source.get(), i); !fresh)
        known->second = -1;
  }
  NodeIndex before_fusion(NodeIndex planned) const {
    const GraphNode& node = planned_[planned];
    const auto found = of_source_.find(node.source.get());
    if (found == of_source_.end() || found->second < 0 || node.blocks > 0) return -1;
    const GraphNode& old = graph_[found->second];
    return old.op == node.op && old.dtype == node.dtype && old.shape == node.shape ? found->second : -1;
  }

  void find_values() {
    find_sources();
    level_of_.assign(graph_.nodes.size(), -1);
    std::unordered_map<std::int32_t, std::size_t> index_of;  // by place
    for (const Task& task : schedule_.tasks)
      for (const Store& store : task.stores) {
        const NodeIndex node = before_fusion(store.node);
        if (node >= 0) level_of_[at(node)] = task.level;
        if (store.place.kind != PlaceKind::temporary) continue;
        index_of.emplace(store.place.index, values_.size());
        const std::uint64_t bytes = static_cast<std::uint64_t>(planned_[store.node].element_count()) *
                                    dtype_size(planned_[store.node].dtype);
        values_.push_back({node, bytes, task.level, task.level, INT32_MAX, task.level});
      }
    const auto each_read = [&](const auto& use) {
      for (const Task& task : schedule_.tasks)
        for (const Read& read : task.reads)
          if (const Place& place = schedule_.place[at(read.node)]; place.kind == PlaceKind::temporary)
            use(values_[index_of.at(place.index)], task.level);
    };
    each_read([](KeptValue& value, std::int32_t level) { value.last = std::max(value.last, level); });
    find_peak();
    each_read([&](KeptValue& value, std::int32_t level) {
      if (level <= peak_)
        value.last_early = std::max(value.last_early, level);
      else
        value.first_late = std::min(value.first_late, level);
    });
  }

  // Per level: the sum of bytes over the values that live from `first` to `last`, both included.
  template <class Range>
  std::vector<std::int64_t> bytes_by_level(const Range& range_of) const {
    std::vector<std::int64_t> bytes(at(schedule_.level_count) + 1, 0);
    for (const KeptValue& value : values_) {
      const auto [first, last] = range_of(value);
      if (first > last) continue;
      bytes[at(first)] += static_cast<std::int64_t>(value.bytes);
      bytes[at(last) + 1] -= static_cast<std::int64_t>(value.bytes);
    }
    for (std::size_t level = 1; level < bytes.size(); ++level) bytes[level] += bytes[level - 1];
    return bytes;
  }

  void find_peak() {
    const auto live =
        bytes_by_level([](const KeptValue& value) { return std::pair(value.first, value.last); });
    peak_ = static_cast<std::int32_t>(std::ranges::max_element(live) - live.begin());
  }

  // ---- pieces ----

  bool may_drop(const KeptValue& value) const {
    if (value.node < 0 || value.first >= peak_ || !value.is_late()) return false;
    return can_repeat(graph_[value.node]);
  }
  static bool can_repeat(const GraphNode& node) {
    return node.kind() != OpKind::leaf && node.op != Op::page && node.op != Op::page_output &&
           node.op != Op::custom;
  }

  // A cut comes after its level. Near each equal share, the level with the fewest bytes that cross.
  void choose_cuts(int pieces) {
    std::vector<std::uint64_t> before(at(peak_) + 1, 0);  // bytes that may be dropped, up to each level
    for (const KeptValue& value : values_)
      if (may_drop(value)) before[at(value.first)] += value.bytes;
    for (std::size_t level = 1; level < before.size(); ++level) before[level] += before[level - 1];
    const std::vector<std::int64_t> crossing =
        bytes_by_level([](const KeptValue& value) { return std::pair(value.first, value.last_early - 1); });
    const auto share = before.back() / static_cast<std::uint64_t>(2 * pieces);
    for (int cut = 1; cut < pieces; ++cut) {
      const std::uint64_t low = share * static_cast<std::uint64_t>(2 * cut - 1), high = low + 2 * share;
      std::int32_t best = -1;
      for (std::int32_t level = cuts_.empty() ? 0 : cuts_.back() + 1; level < peak_; ++level)
        if (before[at(level)] >= low && before[at(level)] <= high &&
            (best < 0 || crossing[at(level)] < crossing[at(best)]))
          best = level;
      if (best >= 0) cuts_.push_back(best);
    }
  }

  std::uint64_t choose_dropped() {
    piece_of_.assign(graph_.nodes.size(), -1);
    std::vector<std::int32_t> first_late(cuts_.size(), INT32_MAX);
    std::vector<std::pair<const KeptValue*, std::size_t>> wanted;
    for (const KeptValue& value : values_) {
      const auto piece =
          static_cast<std::size_t>(std::ranges::lower_bound(cuts_, value.first) - cuts_.begin());
      if (!may_drop(value) || piece == cuts_.size() || value.last_early > cuts_[piece]) continue;
      wanted.emplace_back(&value, piece);
      first_late[piece] = std::min(first_late[piece], value.first_late);
    }
    // The last value that is there before the piece is needed. It depends on nothing that is computed again.
    signals_.assign(cuts_.size(), -1);
    std::vector<std::int32_t> level(cuts_.size(), peak_ - 1);
    for (const KeptValue& value : values_)
      for (std::size_t piece = 0; piece < cuts_.size(); ++piece)
        if (value.node >= 0 && value.first > level[piece] && value.first < first_late[piece] &&
            graph_[value.node].dtype == DType::float32) {
          level[piece] = value.first;
          signals_[piece] = value.node;
        }
    std::uint64_t bytes = 0;
    for (const auto& [value, piece] : wanted) {
      if (signals_[piece] < 0) continue;
      piece_of_[at(value->node)] = static_cast<std::int32_t>(piece);
      bytes += value->bytes;
    }
    return bytes;
  }

  // ---- the graph ----

  // is_late: computed after the peak. is_inlined: by each of its users. sees_dropped: inlined, and reads what
  // is dropped.
  void classify() {
    is_late_.assign(graph_.nodes.size(), 0);
    is_inlined_ = sees_dropped_ = is_late_;
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      const bool has_place = level_of_[at(i)] >= 0;
      is_late_[at(i)] =
          has_place
              ? level_of_[at(i)] > peak_
              : std::ranges::any_of(node.inputs, [&](NodeIndex input) { return is_late_[at(input)] != 0; });
      is_inlined_[at(i)] = !has_place && !is_late_[at(i)] && can_repeat(node);
      sees_dropped_[at(i)] = is_inlined_[at(i)] && std::ranges::any_of(node.inputs, [&](NodeIndex input) {
                               return piece_of_[at(input)] >= 0 || sees_dropped_[at(input)] != 0;
                             });
    }
  }

  NodeIndex append(GraphNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

  void clone_piece(std::int32_t piece) {
    std::vector<std::uint8_t> marked(graph_.nodes.size(), 0);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (piece_of_[at(i)] == piece) marked[at(i)] = 1;
      if (!marked[at(i)]) continue;
      for (const NodeIndex input : graph_[i].inputs)
        if (is_inlined_[at(input)]) marked[at(input)] = 1;
    }
    std::vector<NodeIndex> own(graph_.nodes.size(), -1);
    std::map<NodeIndex, NodeIndex> waiting;
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (!marked[at(i)]) continue;
      GraphNode node = graph_[i];
      for (NodeIndex& input : node.inputs) {
        if (own[at(input)] >= 0)
          input = own[at(input)];
        else if (level_of_[at(input)] >= 0 || graph_[input].op == Op::input)
          input = add_waiting(input, signals_[at(piece)], waiting);
      }
      own[at(i)] = append(std::move(node));
      if (piece_of_[at(i)] == piece) clone_[at(i)] = own[at(i)];
    }
  }

  NodeIndex add_waiting(NodeIndex value, NodeIndex signal, std::map<NodeIndex, NodeIndex>& known) {
    const auto [entry, fresh] = known.try_emplace(value, value);
    if (!fresh) return entry->second;
    const Tensor stands_for_value = input("value", graph_[value].shape, graph_[value].dtype),
                 stands_for_signal = input("signal", graph_[signal].shape, graph_[signal].dtype);
    const Tensor root = wait_for(stands_for_value, stands_for_signal);
    const Result<Graph> part = build_graph(std::span(&root, 1));
    if (!part) return value;
    std::vector<NodeIndex> index;
    for (GraphNode node : part->nodes) {
      if (node.op == Op::input) {
        index.push_back(node.source == stands_for_value.node() ? value : signal);
        continue;
      }
      for (NodeIndex& from : node.inputs) from = index[at(from)];
      index.push_back(append(std::move(node)));
    }
    return entry->second = index[at(part->roots[0])];
  }

  // Late nodes read the clones, directly or through inlined nodes, which are then cloned too.
  void redirect_late() {
    std::vector<std::uint8_t> marked(graph_.nodes.size(), 0);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (!is_late_[at(i)] && !marked[at(i)]) continue;
      for (const NodeIndex input : graph_[i].inputs)
        if (sees_dropped_[at(input)]) marked[at(input)] = 1;
    }
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (!is_late_[at(i)] && !marked[at(i)]) continue;
      GraphNode node = graph_[i];
      for (NodeIndex& input : node.inputs)
        if (clone_[at(input)] >= 0) input = clone_[at(input)];
      if (marked[at(i)])
        clone_[at(i)] = append(std::move(node));
      else
        nodes_[at(i)] = std::move(node);
    }
  }

  // Inputs before users again; drops what nothing needs any more.
  void sort_nodes() {
    std::vector<NodeIndex> index(nodes_.size(), -1), stack;
    std::vector<GraphNode> sorted;
    const auto visit = [&](NodeIndex root) {
      if (root >= 0) stack.push_back(root);
      while (!stack.empty()) {
        const NodeIndex top = stack.back();
        const auto open = std::ranges::find_if(nodes_[at(top)].inputs,
                                               [&](NodeIndex input) { return index[at(input)] < 0; });
        if (index[at(top)] < 0 && open != nodes_[at(top)].inputs.end()) {
          stack.push_back(*open);
          continue;
        }
        stack.pop_back();
        if (index[at(top)] >= 0) continue;
        GraphNode node = nodes_[at(top)];
        for (NodeIndex& input : node.inputs) input = index[at(input)];
        index[at(top)] = static_cast<NodeIndex>(sorted.size());
        sorted.push_back(std::move(node));
      }
    };
    std::vector<std::uint8_t> needed(graph_.nodes.size(), 0);
    const auto need = [&](NodeIndex node) {
      if (node >= 0) needed[at(node)] = 1;
    };
    std::ranges::for_each(graph_.roots, need);
    std::ranges::for_each(request_.inputs, need);
    for (const GraphOutput& output : request_.outputs) need(output.node);
    for (const GraphUpdate& update : request_.updates)
      for (const NodeIndex node : {update.value, update.rows, update.own_rows}) need(node);
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (needed[at(i)]) visit(i);
    graph_.nodes = std::move(sorted);
    for (NodeIndex& root : graph_.roots) root = index[at(root)];
    request_.renumber(index);
  }

  Graph& graph_;
  FusionRequest& request_;
  const Graph& planned_;
  const Schedule& schedule_;
  std::unordered_map<const Node*, NodeIndex> of_source_;  // -1: several nodes have it
  std::vector<KeptValue> values_;
  std::int32_t peak_ = 0;
  std::vector<std::int32_t> cuts_;                                 // levels, ascending
  std::vector<NodeIndex> signals_;                                 // per piece that is dropped
  std::vector<std::int32_t> level_of_, piece_of_;                  // per node; -1: none
  std::vector<std::uint8_t> is_late_, is_inlined_, sees_dropped_;  // per node
  std::vector<NodeIndex> clone_;                                   // per node; -1: none
  std::vector<GraphNode> nodes_;                                   // in no order
};

}  // namespace

Tensor wait_for(const Tensor& value, const Tensor& signal) {
  if (value.dtype() != DType::float32 && value.dtype() != DType::int32) return value;
  Tensor first = signal;
  for (int axis = 0; axis < signal.rank(); ++axis) first = narrow(first, axis, 0, 1);
  first = reshape(first, {});
  const Tensor holds = logical_or(equal(first, first), not_equal(first, first));
  const Tensor waiting = where(holds, value, zeros_like(value));
  if (waiting.ok()) const_cast<Node&>(*waiting.node()).label = kWaitingLabel;  // not shared yet
  return waiting;
}

bool recomputes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    return node.op == Op::where && node.source && node.source->label == kWaitingLabel;
  });
}

std::uint64_t recompute_pieces(Graph& graph, FusionRequest& request, const Graph& planned,
                               const Schedule& schedule, int pieces) {
  return PieceRecomputation(graph, request, planned, schedule).run(pieces);
}

}  // namespace imprint::graph

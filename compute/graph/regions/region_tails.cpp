// Handles sums over values that are themselves sums of partial results or products, such as the squared norm
// of all gradients. The workgroup that adds the partial results of some elements also stores the contribution
// of those elements. The sum of a whole chain of such sums is then one short fold.

#include <algorithm>
#include <utility>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {
namespace {

constexpr std::size_t kMostTerms = 256;  // per sum; the same term may repeat
// A workgroup of a column fold has this many lanes or more for each of its few outputs. They are idle in a
// sum of fewer partial results, which costs more than to read the sums again where there are many: the
// weights of large layers, whose gradients are sums of a few parts.
constexpr std::int64_t kLanes = 16, kMostIdleOutputs = 1 << 16;

class TailSplitter {
 public:
  TailSplitter(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options)
      : graph_(graph), request_(request), split_(split), options_(options) {}

  void run() {
    find_sources();
    find_sums();
    if (too_long_ > 0)
      split_.notes.push_back(std::to_string(too_long_) + " sums add more than " + std::to_string(kMostTerms) +
                             " sums and read them from memory");
    if (std::ranges::none_of(terms_, [](const auto& terms) { return !terms.empty(); })) return;
    for (NodeIndex i = 0; i < graph_.size(); ++i) new_index_.push_back(is_top(i) ? add_sum(i) : add(i));
    graph_.nodes = std::move(nodes_);
    split_.region_of = std::move(result_.region_of);
    split_.row_axis = std::move(result_.row_axis);
    split_.group_axis = std::move(result_.group_axis);
    split_.phase = std::move(result_.phase);
    renumber(new_index_);
    remove_dead();
  }

 private:
  // For each node computed element by element from one sum of partial results, and from memory such as the
  // weights of a penalty: that sum.
  void find_sources() {
    source_.assign(graph_.nodes.size(), -1);
    std::vector<std::uint8_t> wildcard(graph_.nodes.size(), 0);
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      const bool is_mapped = node.kind() == OpKind::leaf || node.kind() == OpKind::generate ||
                             node.kind() == OpKind::elementwise || node.kind() == OpKind::view;
      wildcard[at(i)] = is_mapped && std::ranges::all_of(node.inputs, [&](NodeIndex input) {
                          return wildcard[at(input)] != 0;
                        });
      if (wildcard[at(i)]) continue;
      const bool is_leading =
          !node.ints.empty() && static_cast<std::size_t>(node.ints.back()) + 1 == node.ints.size();
      if (node.kind() == OpKind::reduce && is_leading && folds_partials(i)) {
        source_[at(i)] = i;
        continue;
      }
      if (node.kind() != OpKind::elementwise && node.op != Op::reshape) continue;
      NodeIndex common = -1;
      bool one = true;
      for (NodeIndex input : node.inputs) {
        if (wildcard[at(input)]) continue;
        one = one && source_[at(input)] >= 0 && (common < 0 || common == source_[at(input)]);
        common = source_[at(input)];
      }
      if (one && common >= 0 && graph_[common].element_count() == node.element_count())
        source_[at(i)] = common;
    }
  }

  bool folds_partials(NodeIndex index) const {
    const GraphNode& fold = graph_[index];
    if (fold.element_count() > kMostIdleOutputs && fold_length(graph_, index) < kLanes) return false;
    return graph_[fold.inputs[0]].blocks > 0 ||
           (fold.op == Op::reduce_sum && wants_tiles(graph_, fold.inputs[0], options_));
  }

  void find_sums() {
    terms_.resize(graph_.nodes.size());
    continued_.assign(graph_.nodes.size(), 1);
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      const GraphNode& node = graph_[i];
      const auto all_are_sums = [&] {
        return std::ranges::all_of(node.inputs, [&](NodeIndex input) { return !terms_[at(input)].empty(); });
      };
      if (node.op == Op::reduce_sum && node.dtype == DType::float32 && node.element_count() == 1 &&
          source_[at(node.inputs[0])] >= 0 && source_[at(i)] != i)
        terms_[at(i)] = {i};
      else if ((node.op == Op::add || node.op == Op::reshape) && all_are_sums())
        for (NodeIndex input : node.inputs)
          terms_[at(i)].insert(terms_[at(i)].end(), terms_[at(input)].begin(), terms_[at(input)].end());
      if (terms_[at(i)].size() > kMostTerms) {
        terms_[at(i)].clear();
        ++too_long_;
      }
    }
    for (NodeIndex i = 0; i < graph_.size(); ++i)
      if (terms_[at(i)].empty())
        for (NodeIndex input : graph_[i].inputs) continued_[at(input)] = 0;
    for (const GraphOutput& output : request_.outputs) continued_[at(output.node)] = 0;
    for (const GraphUpdate& update : request_.updates) {
      continued_[at(update.value)] = 0;
      if (update.rows >= 0) continued_[at(update.rows)] = 0;
    }
  }

  bool is_top(NodeIndex i) const { return !terms_[at(i)].empty() && !continued_[at(i)]; }

  NodeIndex add(NodeIndex old) {
    GraphNode node = graph_[old];
    for (NodeIndex& input : node.inputs) input = new_index_[at(input)];
    return push(std::move(node), split_.region_of[at(old)], split_.row_axis[at(old)],
                split_.group_axis[at(old)], split_.phase[at(old)]);
  }

  NodeIndex push(GraphNode node, std::int32_t region, std::int32_t row, std::int32_t group,
                 std::int32_t phase) {
    nodes_.push_back(std::move(node));
    result_.region_of.push_back(region);
    result_.row_axis.push_back(row);
    result_.group_axis.push_back(group);
    result_.phase.push_back(phase);
    return static_cast<NodeIndex>(nodes_.size()) - 1;
  }

  NodeIndex add_sum(NodeIndex top) {
    const std::int32_t phase = split_.phase[at(top)];
    const NodeRef source = graph_[top].source;
    GraphNode joined{Op::concat, DType::float32, {0}, {}, {0}, {}, source};
    for (NodeIndex term : terms_[at(top)]) {
      GraphNode tail = graph_[term];
      nodes_[at(new_index_[at(source_[at(tail.inputs[0])])])].has_tails = true;
      tail.inputs = {new_index_[at(tail.inputs[0])]};
      tail.blocks =
          (graph_[source_[at(graph_[term].inputs[0])]].element_count() + kFoldColumns - 1) / kFoldColumns;
      tail.shape = {tail.blocks};
      joined.shape[0] += tail.blocks;
      joined.inputs.push_back(push(std::move(tail), -1, -1, -1, phase));
    }
    const NodeIndex all =
        joined.inputs.size() == 1 ? joined.inputs[0] : push(std::move(joined), -1, -1, -1, phase);
    const NodeIndex sum =
        push({Op::reduce_sum, DType::float32, {1}, {all}, {0}, {}, source}, -1, -1, -1, phase);
    return push({Op::reshape, DType::float32, graph_[top].shape, {sum}, {}, {}, source}, -1, -1, -1, phase);
  }

  void renumber(const std::vector<NodeIndex>& index) {
    for (NodeIndex& root : graph_.roots) root = index[at(root)];
    request_.renumber(index);
  }

  // Removes nodes that only the old sums used.
  void remove_dead() {
    std::vector<std::uint8_t> live(graph_.nodes.size(), 0);
    const auto mark = [&](NodeIndex node) {
      if (node >= 0) live[at(node)] = 1;
    };
    for (const GraphOutput& output : request_.outputs) mark(output.node);
    for (const GraphUpdate& update : request_.updates) {
      mark(update.value);
      mark(update.rows);
    }
    for (NodeIndex input : request_.inputs) mark(input);
    for (NodeIndex root : graph_.roots) mark(root);
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i)
      if (live[at(i)])
        for (NodeIndex input : graph_[i].inputs) mark(input);
    std::vector<NodeIndex> index(graph_.nodes.size(), -1);
    NodeIndex next = 0;
    for (NodeIndex i = 0; i < graph_.size(); ++i) {
      if (!live[at(i)]) continue;
      GraphNode& node = graph_.nodes[at(i)];
      for (NodeIndex& input : node.inputs) input = index[at(input)];
      index[at(i)] = next;
      if (next != i) {
        graph_.nodes[at(next)] = std::move(node);
        for (auto* values : {&split_.region_of, &split_.row_axis, &split_.group_axis, &split_.phase})
          (*values)[at(next)] = (*values)[at(i)];
      }
      ++next;
    }
    graph_.nodes.resize(at(next));
    for (auto* values : {&split_.region_of, &split_.row_axis, &split_.group_axis, &split_.phase})
      values->resize(at(next));
    renumber(index);
  }

  Graph& graph_;
  FusionRequest& request_;
  RegionSplit& split_;
  const FusionOptions& options_;
  RegionSplit result_;
  std::int64_t too_long_ = 0;  // sums with too many terms
  std::vector<NodeIndex> source_, new_index_;
  std::vector<std::vector<NodeIndex>> terms_;  // per node: the sums that it adds
  std::vector<std::uint8_t> continued_;        // every consumer is such a sum too
  std::vector<GraphNode> nodes_;
};

}  // namespace

void split_tails(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options) {
  TailSplitter(graph, request, split, options).run();
}

}  // namespace imprint::graph

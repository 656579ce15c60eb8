#include "compute/graph/regions/row_folds.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "compute/graph/number_set.h"
#include "compute/graph/schedule/cost.h"

namespace imprint::graph {

using namespace tensor;

namespace {

constexpr std::int32_t kMostFolds = 16;        // of a group: each is a pass over the row in its kernel
constexpr std::int64_t kMostVisits = 1 << 12;  // of a search for a path between groups

// Groups grow while the nodes are visited in order. In the graph whose nodes are the groups and the values
// outside them no circle may close. A node's depth in that graph is the number of groups on the longest path
// to it, itself included. What waits for a group is at least as deep, a group deeper. So most questions
// whether a value waits for a group are answered by two depths. The others take a search through what is deep
// enough, of at most kMostVisits nodes; then the value counts as one that waits.
class RowFinder {
 public:
  RowFinder(const Graph& graph, const RegionSplit& split, const FusionOptions& options)
      : graph_(graph),
        split_(split),
        options_(options),
        consumers_(graph.consumers()),
        group_of_(graph.nodes.size(), -1),
        depth_(graph.nodes.size(), 0) {}

  RowGroups run() {
    for (NodeIndex i = 0; i < graph_.size(); ++i) visit(i);
    drop_plain_folds();
    take_in_prologues();
    return number();
  }

 private:
  // A group while it grows.
  struct Growing {
    RowGroup group;
    std::int32_t merged_into = -1;
    std::vector<NodeIndex> members;
    std::int32_t depth = 1;
    std::int32_t folds = 0;
    NumberSet waiting;     // that wait for it, as far as known: nodes outside groups, first members of groups
    bool is_used = false;  // a value of the rows' length depends on one of its folds
  };

  // Shortens the path that it walks.
  std::int32_t find(std::int32_t group) {
    if (group < 0) return group;
    std::int32_t root = group;
    while (growing(root).merged_into >= 0) root = growing(root).merged_into;
    while (growing(group).merged_into >= 0) group = std::exchange(growing(group).merged_into, root);
    return root;
  }
  Growing& growing(std::int32_t group) { return growing_[at(group)]; }
  const RowGroup& group(std::int32_t index) const { return growing_[at(index)].group; }
  std::int32_t depth_of(NodeIndex node) {
    return group_of_[at(node)] >= 0 ? growing(find(group_of_[at(node)])).depth : depth_[at(node)];
  }

  void visit(NodeIndex index) {
    visited_ = index;
    std::set<std::int32_t> direct;  // groups of the inputs
    for (NodeIndex input : graph_[index].inputs)
      if (group_of_[at(input)] >= 0) direct.insert(find(group_of_[at(input)]));
    const std::int32_t joined = join(index, direct);
    group_of_[at(index)] = joined;
    std::int32_t depth = 0;  // of the inputs outside the group
    for (NodeIndex input : graph_[index].inputs)
      if (joined < 0 || find(group_of_[at(input)]) != joined) depth = std::max(depth, depth_of(input));
    count_steps(options_, 1 + static_cast<std::int64_t>(graph_[index].inputs.size()));
    if (joined < 0) {
      depth_[at(index)] = depth;
      return;
    }
    growing(joined).members.push_back(index);
    growing(joined).folds += graph_[index].kind() == OpKind::reduce;
    if (growing(joined).depth < depth + 1) deepen(joined, depth + 1);
  }

  // Merges the groups of the node's inputs and returns the merged group, which the node joins; -1: none.
  std::int32_t join(NodeIndex index, const std::set<std::int32_t>& direct) {
    if (split_.region_of[at(index)] >= 0 || graph_[index].blocks > 0 || graph_[index].is_snapshot ||
        stays_apart(graph_[index], options_))
      return -1;
    const bool folds = is_row_fold(index);
    std::int32_t joined = -1;
    for (std::int32_t candidate : direct) {
      candidate = find(candidate);
      if (candidate == joined || !(folds ? matches_fold(candidate, index) : fits(candidate, index))) continue;
      if (!has_room(candidate, joined, folds) || input_waits_for(index, candidate, joined)) continue;
      if (joined >= 0 && (waits_for(joined, candidate) || waits_for(candidate, joined))) continue;
      if (joined < 0)
        joined = candidate;
      else
        merge(joined, candidate);
    }
    if (joined >= 0)
      growing(joined).is_used = growing(joined).is_used || graph_[index].shape == group(joined).shape;
    if (joined >= 0 || !folds) return joined;
    const Shape& shape = graph_[graph_[index].inputs[0]].shape;
    growing_.push_back(
        {{shape, static_cast<int>(graph_[index].ints.front()), split_.phase[at(index)]}, -1, {}});
    return static_cast<std::int32_t>(growing_.size()) - 1;
  }

  // Whether one kernel can compute the candidate, what the node joined already, and the node.
  bool has_room(std::int32_t candidate, std::int32_t joined, bool folds) {
    std::int32_t fold_count = growing(candidate).folds + folds;
    std::size_t nodes = growing(candidate).members.size() + 1;
    if (joined >= 0) {
      fold_count += growing(joined).folds;
      nodes += growing(joined).members.size();
    }
    return fold_count <= kMostFolds && nodes <= at(options_.node_limit);
  }

  bool is_row_fold(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (!is_plain_fold(node.op)) return false;
    const GraphNode& source = graph_[node.inputs[0]];
    if (node.dtype != DType::float32 || source.dtype != DType::float32 || node.has_tails || source.blocks > 0)
      return false;
    if (!folds_innermost(graph_, index)) return false;
    const std::int64_t length = fold_length(graph_, index);
    return length >= options_.row_fold_least && length <= options_.row_fold_most &&
           source.element_count() >= options_.row_fold_elements;
  }

  bool matches_fold(std::int32_t candidate, NodeIndex fold) const {
    const RowGroup& own = group(candidate);
    return own.shape == graph_[graph_[fold].inputs[0]].shape &&
           own.first_folded == graph_[fold].ints.front() && own.phase == split_.phase[at(fold)];
  }

  bool fits(std::int32_t candidate, NodeIndex index) const {
    const RowGroup& own = group(candidate);
    const GraphNode& node = graph_[index];
    if (own.phase != split_.phase[at(index)] || (node.kind() != OpKind::elementwise && node.op != Op::expand))
      return false;
    return node.shape == own.shape || (node.kind() == OpKind::elementwise && node.shape == one_a_row(own));
  }

  static Shape one_a_row(const RowGroup& group) {
    Shape shape = group.shape;
    for (int axis = group.first_folded; axis < shape.rank(); ++axis) shape[axis] = 1;
    return shape;
  }

  // ---- dependencies between groups ----

  // Whether an input outside both groups is, or waits for, the candidate.
  bool input_waits_for(NodeIndex index, std::int32_t candidate, std::int32_t joined) {
    return std::ranges::any_of(graph_[index].inputs, [&](NodeIndex input) {
      const std::int32_t group = find(group_of_[at(input)]);
      return (group < 0 || (group != candidate && group != joined)) && reaches(input, candidate);
    });
  }

  bool waits_for(std::int32_t group, std::int32_t other) {
    return growing(group).depth > growing(other).depth && reaches(growing(group).members.front(), other);
  }

  // Whether the node, or its group, waits for the group. Goes back from it, nearest first, through what is
  // deep enough to wait for the group, up to something that is known to wait: in a chain of steps that all
  // ask for one group, each finds the step before it.
  bool reaches(NodeIndex start, std::int32_t group) {
    NumberSet seen;  // nodes outside groups, and the first member of each group
    std::vector<NodeIndex> queue;
    std::int64_t visits = 0;
    const std::int32_t depth = growing(group).depth;
    const NumberSet& waiting = growing(group).waiting;
    const auto first_of = [&](NodeIndex node) {
      const std::int32_t own = find(group_of_[at(node)]);
      return own < 0 ? node : growing(own).members.front();
    };
    const auto add = [&](NodeIndex node) {
      const std::int32_t own = find(group_of_[at(node)]);
      if (own >= 0 ? own != group && growing(own).depth <= depth : depth_[at(node)] < depth) return;
      if (seen.insert(first_of(node))) queue.push_back(node);
    };
    add(start);
    bool found = false;
    for (std::size_t next = 0; next < queue.size() && !found && visits <= kMostVisits; ++next) {
      const NodeIndex node = queue[next];
      const std::int32_t own = find(group_of_[at(node)]);
      found = own == group || waiting.contains(first_of(node));
      const std::span<const NodeIndex> members =
          own >= 0 ? std::span<const NodeIndex>(growing(own).members) : std::span(&node, 1);
      for (NodeIndex member : found ? std::span<const NodeIndex>() : members) {
        visits += 1 + static_cast<std::int64_t>(graph_[member].inputs.size());
        for (NodeIndex input : graph_[member].inputs) add(input);
      }
    }
    count_steps(options_, visits);
    given_up_ += !found && visits > kMostVisits;
    found = found || visits > kMostVisits;
    if (found) growing(group).waiting.insert(first_of(start));
    return found;
  }

  // Whatever waits for the group deepens with it: consumers that were visited already.
  void deepen(std::int32_t group, std::int32_t depth) {
    growing(group).depth = depth;
    std::vector<NodeIndex> stack = growing(group).members;  // of which the depth grew
    while (!stack.empty()) {
      const NodeIndex node = stack.back();
      stack.pop_back();
      const std::int32_t own = find(group_of_[at(node)]);
      count_steps(options_, 1 + static_cast<std::int64_t>(consumers_[at(node)].size()));
      for (NodeIndex consumer : consumers_[at(node)]) {
        if (consumer >= visited_) break;  // ascending
        const std::int32_t other = find(group_of_[at(consumer)]);
        if (other >= 0 && other == own) continue;
        if (other < 0 && depth_[at(consumer)] < depth_of(node)) {
          depth_[at(consumer)] = depth_of(node);
          stack.push_back(consumer);
        } else if (other >= 0 && growing(other).depth <= depth_of(node)) {
          growing(other).depth = depth_of(node) + 1;
          stack.insert(stack.end(), growing(other).members.begin(), growing(other).members.end());
        }
      }
    }
  }

  void merge(std::int32_t into, std::int32_t from) {
    Growing& target = growing(into);
    Growing& source = growing(from);
    source.merged_into = into;
    target.is_used = target.is_used || source.is_used;
    target.folds += source.folds;
    target.members.insert(target.members.end(), source.members.begin(), source.members.end());
    source.members = {};
    source.waiting.each([&](std::int64_t node) { target.waiting.insert(node); });
    source.waiting = {};
    if (target.depth != source.depth) deepen(into, std::max(target.depth, source.depth));
  }

  // ---- further members ----

  // Drops groups without a value of the rows' length that depends on a fold: such folds do as well on their
  // own.
  void drop_plain_folds() {
    for (std::int32_t& group : group_of_)
      if (group >= 0 && !growing(find(group)).is_used) group = -1;
  }

  // A value that only the group reads, element by element, is computed in the group, once.
  void take_in_prologues() {
    for (NodeIndex i = graph_.size() - 1; i >= 0; --i) {
      if (group_of_[at(i)] >= 0 || graph_[i].kind() != OpKind::elementwise || split_.region_of[at(i)] >= 0 ||
          consumers_[at(i)].empty())
        continue;
      const std::int32_t only = find(group_of_[at(consumers_[at(i)].front())]);
      const auto is_of_it = [&](NodeIndex consumer) { return find(group_of_[at(consumer)]) == only; };
      // A rounded result (narrow_products.h) is stored by its product.
      if (only < 0 || graph_[i].is_snapshot || graph_[i].stays_tiled || stays_apart(graph_[i], options_) ||
          !(graph_[i].shape == group(only).shape) || split_.phase[at(i)] != group(only).phase)
        continue;
      if (growing(only).members.size() >= at(options_.node_limit)) continue;
      if (!std::ranges::all_of(consumers_[at(i)], is_of_it)) continue;
      group_of_[at(i)] = only;
      growing(only).members.push_back(i);
    }
  }

  RowGroups number() {
    RowGroups result;
    if (given_up_ > 0)
      result.notes.push_back(std::to_string(given_up_) +
                             " values may stay outside of row kernels: a search of " +
                             std::to_string(kMostVisits) + " nodes did not show whether they wait for them");
    std::vector<std::int32_t> numbers(growing_.size(), -1);
    for (std::int32_t group_index : group_of_) {
      if (group_index >= 0) {
        std::int32_t& own = numbers[static_cast<std::size_t>(find(group_index))];
        if (own < 0) {
          own = static_cast<std::int32_t>(result.groups.size());
          result.groups.push_back(group(find(group_index)));
        }
        group_index = own;
      }
      result.group_of.push_back(group_index);
    }
    return result;
  }

  const Graph& graph_;
  const RegionSplit& split_;
  const FusionOptions& options_;
  std::vector<std::vector<NodeIndex>> consumers_;
  std::vector<std::int32_t> group_of_;  // at the time of joining; find() gives the current group
  std::vector<std::int32_t> depth_;     // of values outside groups
  std::vector<Growing> growing_;
  NodeIndex visited_ = 0;      // being visited
  std::int64_t given_up_ = 0;  // searches
};

}  // namespace

RowGroups find_row_groups(const Graph& graph, const RegionSplit& split, const FusionOptions& options) {
  return RowFinder(graph, split, options).run();
}

}  // namespace imprint::graph

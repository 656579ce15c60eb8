#include "compute/graph/row_folds.h"

#include <algorithm>
#include <set>

#include "compute/graph/cost.h"

namespace imprint::graph {

using namespace tensor;

namespace {

constexpr std::size_t kMostGroups = 256;

class RowFinder {
 public:
  RowFinder(const Graph& graph, const RegionSplit& split, const FusionOptions& options)
      : graph_(graph),
        split_(split),
        options_(options),
        consumers_(graph.consumers()),
        group_of_(graph.nodes.size(), -1),
        behind_(graph.nodes.size()) {}

  RowGroups run() {
    for (NodeIndex i = 0; i < graph_.size(); ++i) visit(i);
    drop_plain_folds();
    take_in_prologues();
    return number();
  }

 private:
  // A group while it grows. `waits_for`: the groups whose values reach it through values outside groups, and
  // the groups that those wait for.
  struct Growing {
    RowGroup group;
    std::int32_t merged_into = -1;
    std::set<std::int32_t> waits_for;
    bool is_used = false;  // a value of the rows' length depends on one of its folds
  };

  std::int32_t find(std::int32_t group) const {
    while (group >= 0 && growing_[static_cast<std::size_t>(group)].merged_into >= 0)
      group = growing_[static_cast<std::size_t>(group)].merged_into;
    return group;
  }
  Growing& growing(std::int32_t group) { return growing_[static_cast<std::size_t>(group)]; }
  const RowGroup& group(std::int32_t index) const { return growing_[static_cast<std::size_t>(index)].group; }

  // The groups of the inputs, and the groups that reach the node through values outside them.
  void visit(NodeIndex index) {
    std::set<std::int32_t> direct, behind;
    for (NodeIndex input : graph_[index].inputs) {
      if (group_of_[at(input)] >= 0) direct.insert(find(group_of_[at(input)]));
      for (std::int32_t group : behind_[at(input)]) behind.insert(find(group));
    }
    const std::int32_t joined = join(index, direct, behind);
    group_of_[at(index)] = joined;
    for (std::int32_t group : direct)
      if (find(group) != joined) behind.insert(find(group));
    if (joined >= 0) wait(joined, behind);
    behind_[at(index)].assign(behind.begin(), behind.end());
  }

  // Merges the groups of the node's inputs and returns the merged group, which the node joins; -1: none.
  std::int32_t join(NodeIndex index, const std::set<std::int32_t>& direct,
                    const std::set<std::int32_t>& behind) {
    if (split_.region_of[at(index)] >= 0 || graph_[index].blocks > 0 || graph_[index].is_snapshot) return -1;
    const bool folds = is_row_fold(index);
    std::int32_t joined = -1;
    for (std::int32_t candidate : direct) {
      candidate = find(candidate);
      if (candidate == joined || !(folds ? matches_fold(candidate, index) : fits(candidate, index))) continue;
      std::set<std::int32_t> others = behind;
      for (std::int32_t other : direct)
        if (find(other) != candidate && find(other) != joined) others.insert(find(other));
      if (!may_wait(candidate, others) || (joined >= 0 && !may_merge(joined, candidate))) continue;
      if (joined < 0)
        joined = candidate;
      else
        merge(joined, candidate);
    }
    if (joined >= 0)
      growing(joined).is_used = growing(joined).is_used || graph_[index].shape == group(joined).shape;
    if (joined >= 0 || !folds || growing_.size() == kMostGroups) return joined;
    const Shape& shape = graph_[graph_[index].inputs[0]].shape;
    growing_.push_back(
        {{shape, static_cast<int>(graph_[index].ints.front()), split_.phase[at(index)]}, -1, {}, false});
    return static_cast<std::int32_t>(growing_.size()) - 1;
  }

  bool is_row_fold(NodeIndex index) const {
    const GraphNode& node = graph_[index];
    if (node.op != Op::reduce_sum && node.op != Op::reduce_max && node.op != Op::reduce_min &&
        node.op != Op::reduce_prod)
      return false;
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

  bool reaches(std::int32_t from, std::int32_t to) const {
    return std::ranges::any_of(growing_[static_cast<std::size_t>(from)].waits_for,
                               [&](std::int32_t other) { return find(other) == to; });
  }

  bool may_wait(std::int32_t group, const std::set<std::int32_t>& others) const {
    return std::ranges::none_of(others,
                                [&](std::int32_t other) { return other == group || reaches(other, group); });
  }

  bool may_merge(std::int32_t a, std::int32_t b) const { return !reaches(a, b) && !reaches(b, a); }

  void wait(std::int32_t group, const std::set<std::int32_t>& others) {
    std::set<std::int32_t> all = others;
    for (std::int32_t other : others)
      all.insert(growing(other).waits_for.begin(), growing(other).waits_for.end());
    growing(group).waits_for.insert(all.begin(), all.end());
    for (std::size_t i = 0; i < growing_.size(); ++i)
      if (reaches(static_cast<std::int32_t>(i), group)) growing_[i].waits_for.insert(all.begin(), all.end());
  }

  void merge(std::int32_t into, std::int32_t from) {
    growing(from).merged_into = into;
    growing(into).is_used = growing(into).is_used || growing(from).is_used;
    wait(into, growing(from).waits_for);
    for (std::size_t i = 0; i < growing_.size(); ++i)
      if (reaches(static_cast<std::int32_t>(i), into))
        growing_[i].waits_for.insert(growing(into).waits_for.begin(), growing(into).waits_for.end());
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
      if (only < 0 || graph_[i].is_snapshot || !(graph_[i].shape == group(only).shape) ||
          split_.phase[at(i)] != group(only).phase)
        continue;
      if (std::ranges::all_of(consumers_[at(i)], is_of_it)) group_of_[at(i)] = only;
    }
  }

  RowGroups number() {
    RowGroups result;
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
  std::vector<std::vector<std::int32_t>>
      behind_;  // per node: groups that reach it through values outside them
  std::vector<Growing> growing_;
};

}  // namespace

RowGroups find_row_groups(const Graph& graph, const RegionSplit& split, const FusionOptions& options) {
  return RowFinder(graph, split, options).run();
}

}  // namespace imprint::graph

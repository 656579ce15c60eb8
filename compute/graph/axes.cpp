#include "compute/graph/axes.h"

#include <algorithm>
#include <numeric>

#include "compute/graph/axis_map.h"

namespace imprint::graph {
namespace {

class Union {
 public:
  explicit Union(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), AxisClass{0});
  }

  AxisClass find(std::size_t entry) {
    auto root = static_cast<AxisClass>(entry);
    while (parent_[static_cast<std::size_t>(root)] != root) root = parent_[static_cast<std::size_t>(root)];
    for (auto walk = static_cast<AxisClass>(entry); walk != root;)
      walk = std::exchange(parent_[static_cast<std::size_t>(walk)], root);
    return root;
  }

  void join(std::size_t a, std::size_t b) {
    const AxisClass x = find(a), y = find(b);
    if (x != y) parent_[static_cast<std::size_t>(std::max(x, y))] = std::min(x, y);
  }

 private:
  std::vector<AxisClass> parent_;
};

class Joiner {
 public:
  Joiner(const Graph& graph, const std::vector<std::size_t>& first, const std::vector<std::uint8_t>& wildcard,
         Union& classes)
      : graph_(graph), first_(first), wildcard_(wildcard), classes_(classes) {}

  void visit(NodeIndex index) {
    const GraphNode& node = graph_[index];
    if (node.op == Op::reshape) return reshaped(index, node);
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      for (int axis = 0; axis < node.shape.rank(); ++axis) {
        const AxisSource source = axis_source(node, graph_[node.inputs[slot]].shape, slot, axis);
        if (source.relation != AxisSource::Relation::none) join(index, axis, node.inputs[slot], source.axis);
      }
    // Axes that only inputs have.
    const int rank = node.shape.rank();
    if (node.kind() == OpKind::contract) join(node.inputs[0], rank - 1, node.inputs[1], rank - 2);
    if (node.op == Op::scatter_add) {
      const int axis = static_cast<int>(node.ints[0]);
      join(node.inputs[1], axis, node.inputs[2], axis);
    }
  }

 private:
  void join(NodeIndex a, int axis_a, NodeIndex b, int axis_b) {
    if (wildcard_[at(a)] || wildcard_[at(b)]) return;
    classes_.join(first_[at(a)] + static_cast<std::size_t>(axis_a),
                  first_[at(b)] + static_cast<std::size_t>(axis_b));
  }

  // Keeps axes that the reshape neither splits nor merges: walks both shapes up to equal products. Skips
  // extents of 1 in front of an axis. If a group of equal product has one axis and otherwise extents of 1,
  // that axis keeps its class.
  void reshaped(NodeIndex index, const GraphNode& node) {
    const Shape& from = graph_[node.inputs[0]].shape;
    const Shape& to = node.shape;
    if (to.element_count() == 0) return;
    int f = 0, t = 0;
    while (f < from.rank() || t < to.rank()) {
      if (f < from.rank() && t < to.rank() && from[f] == to[t]) {
        join(index, t++, node.inputs[0], f++);
        continue;
      }
      if (f < from.rank() && from[f] == 1) {
        ++f;
        continue;
      }
      if (t < to.rank() && to[t] == 1) {
        ++t;
        continue;
      }
      std::int64_t f_product = from[f++], t_product = to[t++];
      while (f_product != t_product) {
        if (f_product < t_product)
          f_product *= from[f++];
        else
          t_product *= to[t++];
      }
    }
  }

  const Graph& graph_;
  const std::vector<std::size_t>& first_;
  const std::vector<std::uint8_t>& wildcard_;
  Union& classes_;
};

}  // namespace

AxisClasses::AxisClasses(const Graph& graph) {
  std::size_t count = 0;
  for (const GraphNode& node : graph.nodes) {
    first_.push_back(count);
    count += static_cast<std::size_t>(node.shape.rank());
    const bool leaf = node.kind() == OpKind::leaf || node.op == Op::random_uniform;
    wildcard_.push_back(!leaf && std::ranges::all_of(node.inputs, [&](NodeIndex input) {
      return wildcard_[at(input)] != 0;
    }));
  }
  Union classes(count);
  Joiner joiner(graph, first_, wildcard_, classes);
  for (NodeIndex index = 0; index < graph.size(); ++index) joiner.visit(index);
  for (std::size_t entry = 0; entry < count; ++entry) classes_.push_back(classes.find(entry));
}

int AxisClasses::axis_in(const Graph& graph, NodeIndex node, AxisClass axis_class) const {
  int found = -1;
  for (int axis = 0; axis < graph[node].shape.rank(); ++axis) {
    if (of(node, axis) != axis_class) continue;
    if (found >= 0) return -2;
    found = axis;
  }
  return found;
}

}  // namespace imprint::graph

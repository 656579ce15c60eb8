#include "compute/graph/axes.h"

#include <algorithm>
#include <numeric>

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
    switch (node.kind()) {
      case OpKind::elementwise:
        for (NodeIndex input : node.inputs) same(index, input, -1);
        return;
      case OpKind::reduce:
        return reduced(index, node);
      case OpKind::contract:
        return contracted(index, node);
      case OpKind::scan:
        return same(index, node.inputs[0], -1);
      default:
        break;
    }
    switch (node.op) {
      case Op::reshape:
        return reshaped(index, node);
      case Op::permute:
        for (int axis = 0; axis < node.shape.rank(); ++axis)
          join(index, axis, node.inputs[0], static_cast<int>(node.ints[static_cast<std::size_t>(axis)]));
        return;
      case Op::expand:
        for (int axis = 0; axis < node.shape.rank(); ++axis)
          if (node.shape[axis] == graph_[node.inputs[0]].shape[axis]) join(index, axis, node.inputs[0], axis);
        return;
      case Op::slice:
      case Op::pad:
        // For a whole axis the attributes are {0, 1}; for an axis without padding they are {0, 0}.
        for (int axis = 0; axis < node.shape.rank(); ++axis) {
          const auto a = static_cast<std::size_t>(axis);
          if (node.shape[axis] == graph_[node.inputs[0]].shape[axis] && node.ints[2 * a] == 0 &&
              node.ints[2 * a + 1] == (node.op == Op::slice ? 1 : 0))
            join(index, axis, node.inputs[0], axis);
        }
        return;
      case Op::window:
      case Op::unwindow: {
        const NodeIndex wide = node.op == Op::window ? node.inputs[0] : index;
        const NodeIndex narrow = node.op == Op::window ? index : node.inputs[0];
        for (int axis = 0; axis < graph_[wide].shape.rank(); ++axis)
          if (axis != node.ints[0]) join(wide, axis, narrow, axis);
        return;
      }
      case Op::concat:
        for (NodeIndex input : node.inputs) same(index, input, static_cast<int>(node.ints[0]));
        return;
      case Op::gather:
        same(index, node.inputs[1], -1);
        same(index, node.inputs[0], static_cast<int>(node.ints[0]));
        return;
      case Op::take:
        return taken(index, node);
      case Op::scatter_add:
        same(index, node.inputs[0], -1);
        same(node.inputs[1], node.inputs[2], -1);
        same(index, node.inputs[2], static_cast<int>(node.ints[0]));
        return;
      default:
        return;
    }
  }

 private:
  void join(NodeIndex a, int axis_a, NodeIndex b, int axis_b) {
    if (wildcard_[at(a)] || wildcard_[at(b)]) return;
    classes_.join(first_[at(a)] + static_cast<std::size_t>(axis_a),
                  first_[at(b)] + static_cast<std::size_t>(axis_b));
  }

  // All axes except `but`, where the extents agree.
  void same(NodeIndex a, NodeIndex b, int but) {
    for (int axis = 0; axis < graph_[a].shape.rank(); ++axis)
      if (axis != but && graph_[a].shape[axis] == graph_[b].shape[axis]) join(a, axis, b, axis);
  }

  void reduced(NodeIndex index, const GraphNode& node) {
    for (int axis = 0; axis < node.shape.rank(); ++axis)
      if (std::ranges::find(node.ints, axis) == node.ints.end()) join(index, axis, node.inputs[0], axis);
  }

  void contracted(NodeIndex index, const GraphNode& node) {
    const int rank = node.shape.rank();
    for (int axis = 0; axis < rank - 2; ++axis) {
      join(index, axis, node.inputs[0], axis);
      join(index, axis, node.inputs[1], axis);
    }
    join(index, rank - 2, node.inputs[0], rank - 2);
    join(index, rank - 1, node.inputs[1], rank - 1);
    join(node.inputs[0], rank - 1, node.inputs[1], rank - 2);
  }

  void taken(NodeIndex index, const GraphNode& node) {
    const int axis = static_cast<int>(node.ints[0]);
    const int inserted = graph_[node.inputs[1]].shape.rank();
    for (int i = 0; i < inserted; ++i) join(index, axis + i, node.inputs[1], i);
    for (int i = 0; i < graph_[node.inputs[0]].shape.rank(); ++i)
      if (i != axis) join(index, i < axis ? i : i + inserted - 1, node.inputs[0], i);
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

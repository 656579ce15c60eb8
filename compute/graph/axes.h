#pragma once
// Finds which axes of a graph's values are the same axis. A network's batch axis keeps its class through
// every operation that does not mix it. Position and equal extents of other axes do not matter. Pure
// arithmetic.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

using AxisClass = std::int32_t;

class AxisClasses {
 public:
  explicit AxisClasses(const Graph& graph);

  AxisClass of(NodeIndex node, int axis) const {
    return classes_[first_[static_cast<std::size_t>(node)] + static_cast<std::size_t>(axis)];
  }

  // The node's only axis of the class; -1 when it has none, -2 when it has several.
  int axis_in(const Graph& graph, NodeIndex node, AxisClass axis_class) const;

  // A value without memory behind it, such as a constant spread over a shape. Each consumer may choose its
  // axes' classes.
  bool is_wildcard(NodeIndex node) const { return wildcard_[static_cast<std::size_t>(node)] != 0; }

 private:
  std::vector<std::size_t> first_;  // per node: position of its first axis in classes_
  std::vector<AxisClass> classes_;
  std::vector<std::uint8_t> wildcard_;
};

}  // namespace imprint::graph

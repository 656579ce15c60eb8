#pragma once
// Which axis of an input feeds which axis of a node's result: the one place that knows it. Passes and kernels
// ask here instead of naming operations. A reshape regroups axes and has rules of its own where it is used.

#include <cstdint>

#include "compute/graph/graph.h"

namespace imprint::graph {

struct AxisSource {
  // related: both axes count the same things. same: moreover a position of the result needs only that
  // position of the input, and both extents are equal.
  enum class Relation : std::uint8_t { none, related, same };

  int axis = -1;                     // of the input; -1: none
  std::int64_t start = 0, step = 1;  // position of the input = start + step * position of the result
  Relation relation = Relation::none;

  bool is_same() const { return relation == Relation::same; }
};

// Where input `slot`, of shape `from`, is read for positions along an axis of the node. Two axes of a window
// read one axis: their positions add up.
AxisSource axis_source(const GraphNode& node, const Shape& from, std::size_t slot, int axis);

// Whether positions along the input's axis `from_axis` are those along the node's axis, and each needs only
// its own. Differs from axis_source where a reshape has several axes of extent 1.
bool is_same_axis(const GraphNode& node, const Shape& from, std::size_t slot, int from_axis, int axis);

}  // namespace imprint::graph

#include "compute/graph/axis_map.h"

#include <algorithm>

namespace imprint::graph {
namespace {

using Relation = AxisSource::Relation;

AxisSource at_axis(const GraphNode& node, const Shape& from, int axis, int from_axis) {
  if (from_axis >= from.rank()) return {};
  const bool is_equal = from[from_axis] == node.shape[axis];
  return {from_axis, 0, 1, is_equal ? Relation::same : Relation::none};
}

std::int64_t elements_behind(const Shape& shape, int axis) {
  std::int64_t count = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) count *= shape[i];
  return count;
}

bool keeps_its_place(const Shape& from, int from_axis, const Shape& to, int axis) {
  return from[from_axis] == to[axis] && elements_behind(from, from_axis) == elements_behind(to, axis);
}

AxisSource of_reshape(const GraphNode& node, const Shape& from, int axis) {
  for (int p = 0; p < from.rank(); ++p)
    if (keeps_its_place(from, p, node.shape, axis)) return {p, 0, 1, Relation::same};
  return {};
}

// Along one axis, positions have another meaning than elsewhere.
AxisSource except(const GraphNode& node, const Shape& from, int axis, std::int64_t but) {
  return axis == but ? AxisSource{} : at_axis(node, from, axis, axis);
}

// The same positions, of which several inputs or elements decide.
AxisSource related(const GraphNode& node, const Shape& from, int axis) {
  AxisSource source = at_axis(node, from, axis, axis);
  if (source.is_same()) source.relation = Relation::related;
  return source;
}

AxisSource of_take(const GraphNode& node, const Shape& from, std::size_t slot, int axis) {
  const int first = static_cast<int>(node.ints[0]);
  if (slot == 1)
    return axis >= first && axis < first + from.rank() ? at_axis(node, from, axis, axis - first)
                                                       : AxisSource{};
  const int inserted = node.shape.rank() - from.rank() + 1;
  if (axis < first) return at_axis(node, from, axis, axis);
  return axis < first + inserted ? AxisSource{} : at_axis(node, from, axis, axis - inserted + 1);
}

AxisSource of_window(const GraphNode& node, const Shape& from, int axis) {
  const int along = static_cast<int>(node.ints[0]);
  if (axis == along) return {along, 0, node.ints[2], Relation::none};
  if (axis == from.rank()) return {along, 0, node.ints[3], Relation::none};
  return at_axis(node, from, axis, axis);
}

AxisSource of_op(const GraphNode& node, const Shape& from, std::size_t slot, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  switch (node.op) {
    case Op::reshape:
      return of_reshape(node, from, axis);
    case Op::permute:
      return at_axis(node, from, axis, static_cast<int>(node.ints[a]));
    case Op::expand: {
      AxisSource source = at_axis(node, from, axis, axis);
      if (from[axis] == 1) source.step = 0;
      return source;
    }
    case Op::slice: {
      AxisSource source = at_axis(node, from, axis, axis);
      source.start = node.ints[2 * a];
      source.step = node.ints[2 * a + 1];
      if (source.start != 0 || source.step != 1) source.relation = Relation::none;
      return source;
    }
    case Op::pad: {
      AxisSource source = at_axis(node, from, axis, axis);
      source.start = -node.ints[2 * a];
      return source;
    }
    case Op::window:
      return of_window(node, from, axis);
    case Op::unwindow:
    case Op::concat:
      return except(node, from, axis, node.ints[0]);
    case Op::gather:
      return slot == 1 && axis == node.ints[0] ? related(node, from, axis)
                                               : except(node, from, axis, node.ints[0]);
    case Op::scatter_add:
      return slot == 0 && axis == node.ints[0] ? related(node, from, axis)
                                               : except(node, from, axis, node.ints[0]);
    case Op::take:
      return of_take(node, from, slot, axis);
    default:
      return {};
  }
}

}  // namespace

AxisSource axis_source(const GraphNode& node, const Shape& from, std::size_t slot, int axis) {
  const int rank = node.shape.rank();
  switch (node.kind()) {
    case OpKind::elementwise:
      return at_axis(node, from, axis, axis);
    case OpKind::reduce:
      return std::ranges::find(node.ints, axis) == node.ints.end() ? at_axis(node, from, axis, axis)
                                                                   : AxisSource{};
    case OpKind::contract:
      return axis < rank - 2 || (axis == rank - 2) == (slot == 0) ? at_axis(node, from, axis, axis)
                                                                  : AxisSource{};
    case OpKind::scan:
      if (from.rank() != rank) return {};
      return axis == node.ints[0] ? related(node, from, axis) : at_axis(node, from, axis, axis);
    default:
      return of_op(node, from, slot, axis);
  }
}

bool is_same_axis(const GraphNode& node, const Shape& from, std::size_t slot, int from_axis, int axis) {
  if (node.op == Op::reshape) return keeps_its_place(from, from_axis, node.shape, axis);
  const AxisSource source = axis_source(node, from, slot, axis);
  return source.is_same() && source.axis == from_axis;
}

}  // namespace imprint::graph

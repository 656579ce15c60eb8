#include "compute/graph/passes/inlined_code.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "compute/base/at.h"
#include "compute/graph/axis_map.h"
#include "compute/tensor/pages/library_page.h"

namespace imprint::graph {
namespace {

std::uint64_t name_of(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t name = 0x243f6a8885a308d3u;
  for (std::uint64_t part : parts) {
    name = (name ^ part) * 0x9e3779b97f4a7c15u;
    name ^= name >> 29;
  }
  return name | 1;  // never 0
}

std::uint64_t bits(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

std::int64_t InlinedCode::values(NodeIndex node, std::int64_t most) {
  values_left_ = repeats_left_ = most + 1;
  counts_loads_ = true;
  start(node);
  return most + 1 - values_left_;
}

std::int64_t InlinedCode::repeats(NodeIndex node, std::int64_t most) {
  values_left_ = std::numeric_limits<std::int64_t>::max();
  repeats_left_ = most + 1;
  counts_loads_ = false;
  start(node);
  return most + 1 - repeats_left_;
}

void InlinedCode::start(NodeIndex node) {
  known_.clear();
  order_.clear();
  computed_ = {};
  Index index;
  index.linear = position_named(1);
  visit(node, index);
}

void InlinedCode::visit(NodeIndex node, const Index& index) {
  if (values_left_ <= 0 || repeats_left_ <= 0) return;
  if (!counts_loads_ && !order_.empty() && is_loaded(node)) return;
  std::uint64_t key = name_of({bits(node), index.linear ? 1u : 0u});
  if (index.linear)
    key = name_of({key, index.linear->name, bits(index.linear->constant)});
  else
    for (const Position& axis : index.axes) key = name_of({key, axis.name, bits(axis.constant)});
  if (!known_.insert(key).second) return;
  order_.push_back(key);
  const bool is_root = order_.size() == 1;
  --values_left_;
  ++steps_;
  const GraphNode& entry = graph_[node];
  if (entry.inputs.empty() || (memory_[at(node)] && !is_root)) return;
  if (!computed_.insert(node)) --repeats_left_;
  if (!counts_loads_ && joins_of_loads_.contains(node)) return;
  switch (entry.kind()) {
    case OpKind::elementwise:
      for (NodeIndex input : entry.inputs) visit(input, index);
      return;
    case OpKind::view:
      return visit(entry.inputs[0], through_view(node, index));
    default:
      break;
  }
  if (entry.op != Op::pad && entry.op != Op::concat) {  // indices of a loop's own
    for (NodeIndex input : entry.inputs) {
      Index own;
      own.linear = position_named(name_of({key, bits(input)}));
      visit_within_scope(input, own);
    }
    return;
  }
  Index inner{std::nullopt, axes_of(index, entry.shape)};
  if (entry.op == Op::pad) {
    for (std::size_t axis = 0; axis < inner.axes.size(); ++axis)
      inner.axes[axis].constant -= entry.ints[2 * axis];
    return visit_within_scope(entry.inputs[0], inner);
  }
  // A join of thousands may stand in a kernel hundreds of times.
  if (std::ranges::all_of(entry.inputs, [this](NodeIndex input) { return is_loaded(input); }))
    joins_of_loads_.insert(node);
  for (NodeIndex input : entry.inputs) {
    visit_within_scope(input, inner);
    inner.axes[at(entry.ints[0])].constant -= graph_[input].shape[static_cast<int>(entry.ints[0])];
  }
}

void InlinedCode::visit_within_scope(NodeIndex node, const Index& index) {
  const std::size_t before = order_.size();
  visit(node, index);
  for (std::size_t i = before; i < order_.size(); ++i) known_.erase(order_[i]);
  order_.resize(before);
}

std::vector<InlinedCode::Position> InlinedCode::axes_of(const Index& index, const Shape& shape) const {
  if (shape.rank() == 0 || !index.axes.empty()) return index.axes;
  std::vector<Position> axes;
  const auto strides = row_major_strides(shape);
  const auto longer = std::ranges::count_if(shape.extents(), [](std::int64_t extent) { return extent > 1; });
  const Position& linear = *index.linear;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] <= 1)
      axes.emplace_back();
    else if (longer == 1)
      axes.push_back(linear);
    else
      axes.push_back(position_named(
          name_of({linear.name, bits(linear.constant), bits(strides[at(axis)]), bits(shape[axis])})));
  }
  return axes;
}

InlinedCode::Index InlinedCode::through_view(NodeIndex node, const Index& index) const {
  const GraphNode& entry = graph_[node];
  const Shape& source = graph_[entry.inputs[0]].shape;
  if (entry.op == Op::reshape) return reshaped(index, entry.shape, source);
  const std::vector<Position> own = axes_of(index, entry.shape);
  Index result;
  result.axes.resize(at(source.rank()));
  std::vector<std::uint8_t> is_set(at(source.rank()), 0);
  for (int axis = 0; axis < entry.shape.rank(); ++axis) {
    const AxisSource from = axis_source(entry, source, 0, axis);
    Position term = own[at(axis)];
    if (from.step != 1) {
      if (term.name != 0) term.name = from.step == 0 ? 0 : name_of({term.name, bits(from.step)});
      term.constant *= from.step;
    }
    term.constant += from.start;
    Position& position = result.axes[at(from.axis)];
    if (is_set[at(from.axis)] && term.name != 0 && position.name != 0)
      term.name = name_of({position.name, term.name});
    else if (is_set[at(from.axis)])
      term.name += position.name;
    position = {term.name, term.constant + position.constant};
    is_set[at(from.axis)] = 1;
  }
  if (source.rank() == 0) result.linear = Position{};
  return result;
}

// Groups of axes with equal products: a group with one longer axis on each side keeps its index.
InlinedCode::Index InlinedCode::reshaped(const Index& index, const Shape& from, const Shape& to) const {
  if (index.linear) return {index.linear, {}};
  Index result;
  if (to.rank() == 0) result.linear = Position{};
  const auto end_of_ones = [](const Shape& shape, int axis) {
    while (axis < shape.rank() && shape[axis] == 1) ++axis;
    return axis;
  };
  int f = 0, t = 0;
  while (f < from.rank() || t < to.rank()) {
    const int f_first = f, t_first = t;
    f = end_of_ones(from, f);
    t = end_of_ones(to, t);
    std::int64_t f_product = 1, t_product = 1;
    if (f < from.rank()) f_product = from[f++];
    if (t < to.rank()) t_product = to[t++];
    while (f_product != t_product) {
      if (f_product < t_product ? f < from.rank() : t >= to.rank() && f < from.rank())
        f_product *= from[f++];
      else if (t < to.rank())
        t_product *= to[t++];
      else
        break;
    }
    Position linear;
    int longer_from = 0, longer_to = 0;
    for (int axis = f_first; axis < f; ++axis)
      if (from[axis] != 1) {
        linear =
            longer_from++ == 0
                ? index.axes[at(axis)]
                : position_named(name_of({linear.name, bits(linear.constant), bits(from[axis]),
                                          index.axes[at(axis)].name, bits(index.axes[at(axis)].constant)}));
      }
    for (int axis = t_first; axis < t; ++axis) longer_to += to[axis] != 1;
    for (int axis = t_first; axis < t; ++axis) {
      if (to[axis] == 1)
        result.axes.emplace_back();
      else if (longer_to == 1)
        result.axes.push_back(linear);
      else
        result.axes.push_back(position_named(
            name_of({linear.name, bits(linear.constant), bits(axis - t_first), bits(to[axis])})));
    }
  }
  return result;
}

std::vector<std::uint8_t> computed_inputs(const Graph& graph, const std::vector<std::uint8_t>& forced) {
  std::vector<std::uint8_t> is_computed(graph.nodes.size(), 0), is_read(is_computed), is_stored(forced);
  for (NodeIndex i = graph.size() - 1; i >= 0; --i) {
    const GraphNode& node = graph[i];
    const OpKind kind = node.kind();
    is_computed[at(i)] = is_read[at(i)] && !is_stored[at(i)] &&
                         (kind == OpKind::view || kind == OpKind::elementwise || kind == OpKind::generate);
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const bool computes = node.op == Op::page ? std::ranges::count(node.source->page->computed, slot) > 0
                                                : is_computed[at(i)] != 0;
      is_read[at(node.inputs[slot])] = 1;
      if (!computes) is_stored[at(node.inputs[slot])] = 1;
    }
  }
  return is_computed;
}

}  // namespace imprint::graph

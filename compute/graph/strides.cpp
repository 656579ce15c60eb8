#include "compute/graph/strides.h"

#include "compute/base/at.h"
#include "compute/graph/axis_map.h"

namespace imprint::graph {
namespace {

// Computes the strides of `to`, which has the elements of `from` in row-major order. Both shapes split into
// runs of axes with equal products. A run has one stride if its axes of `from` lie in row-major order: the
// stride of each is that of the innermost times the extents after it.
bool reshape_strides(const Shape& from, const Shape& to, Strides& strides) {
  std::array<std::int64_t, Shape::kMaxRank> result{};
  int f = 0, t = 0;
  while (f < from.rank() && t < to.rank()) {
    int f_end = f + 1, t_end = t + 1;
    std::int64_t f_product = from[f], t_product = to[t];
    while (f_product != t_product) {
      if (f_product < t_product && f_end < from.rank())
        f_product *= from[f_end++];
      else if (t_end < to.rank())
        t_product *= to[t_end++];
      else
        return false;
    }
    // stride: of the run's innermost axis. reach: product of the extents visited so far.
    std::int64_t stride = 0, reach = 1;
    for (int axis = f_end - 1; axis >= f; --axis) {
      if (from[axis] == 1) continue;
      const std::int64_t own = strides.axis[static_cast<std::size_t>(axis)];
      if (reach == 1)
        stride = own;
      else if (own != stride * reach)
        return false;
      reach *= from[axis];
    }
    for (int axis = t_end - 1; axis >= t; --axis) {
      result[static_cast<std::size_t>(axis)] = stride;
      stride *= to[axis];
    }
    f = f_end;
    t = t_end;
  }
  strides.axis = result;
  return true;
}

}  // namespace

std::optional<Strides> strides_of(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                  NodeIndex index) {
  std::vector<NodeIndex> views;
  while (!materialized[static_cast<std::size_t>(index)]) {
    if (graph[index].kind() != OpKind::view || graph[index].element_count() == 0) return std::nullopt;
    views.push_back(index);
    index = graph[index].inputs[0];
  }
  Strides strides;
  strides.memory = index;
  strides.axis = row_major_strides(graph[index].shape);
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    const GraphNode& node = graph[*view];
    const Shape& source = graph[node.inputs[0]].shape;
    const auto before = strides.axis;
    if (node.op == Op::reshape) {
      if (!reshape_strides(source, node.shape, strides)) return std::nullopt;
      continue;
    }
    // A window: two axes read one.
    if (node.shape.rank() > source.rank() && node.shape[source.rank()] != 1) return std::nullopt;
    for (int axis = 0; axis < node.shape.rank(); ++axis) {
      const AxisSource from = axis_source(node, source, 0, axis);
      strides.start += before[at(from.axis)] * from.start;
      strides.axis[at(axis)] = before[at(from.axis)] * from.step;
    }
  }
  return strides;
}

}  // namespace imprint::graph

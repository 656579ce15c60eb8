// Named extents in kernels: a run uses a part of what a kernel was made for. Values beyond are masked or have
// no meaning, so that leaving them out only saves time.

#include <algorithm>

#include "compute/kernels/emitter.h"

namespace imprint::kernels {

using namespace graph;
using namespace tensor;

std::string Emitter::extent_of_run(const RunExtent& extent) {
  const Place place{PlaceKind::input, extent.input};
  return memory_.array(place, DType::int32) + "[" + memory_.offset(place) + "]";
}

std::string Emitter::used_places(const Shape& shape, int axis, std::int64_t inner) {
  const RunExtent* extent = extent_of_axis(schedule_, shape, axis);
  if (!extent) return {};
  const std::int64_t scale = shape[axis] / extent->bound * inner;
  return scale == 1 ? extent_of_run(*extent) : text("(", extent_of_run(*extent), " * ", scale, ")");
}

std::string Emitter::used_terms(NodeIndex fold) {
  if (schedule_.extents.empty()) return {};
  const GraphNode& node = graph_[fold];
  const Shape source = shape_behind_mask(graph_, node.inputs[0]);
  if (node.op == tensor::Op::matmul) {
    const int rank = source.rank();
    const std::string left = used_places(source, rank - 1);
    return left.empty() ? used_places(shape_behind_mask(graph_, node.inputs[1]), rank - 2) : left;
  }
  int first = -1;
  std::int64_t inner = 1;
  for (const std::int64_t axis : node.ints) {
    const int a = static_cast<int>(axis);
    if (first >= 0) inner *= source[a];
    if (first < 0 && source[a] != 1) first = a;
  }
  return first < 0 ? std::string() : used_places(source, first, inner);
}

void Emitter::leave_unused(const IndexExpression& linear, std::int64_t neighbours) {
  if (schedule_.extents.empty() || task_.stores.empty()) return;
  const Shape& shape = graph_[task_.stores[0].node].shape;
  for (const Store& store : task_.stores) {
    const GraphNode& node = graph_[store.node];
    if (store.row_indices >= 0 || node.blocks > 0 || !(node.shape == shape)) return;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (node.shape.name(axis) != shape.name(axis)) return;
  }
  std::int64_t inner = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::vector<AxisPart> parts = shape.parts(axis);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const auto extent = std::ranges::find(schedule_.extents, part->extent, &RunExtent::name);
      // The first part of all: workgroups beyond it do not run.
      const bool is_first = inner * part->places() == shape.element_count();
      if (extent != schedule_.extents.end() && inner % neighbours == 0 && !is_first)
        line(text("if (", (linear / inner % part->places()).str(), " >= ", extent_of_run(*extent), " * ",
                  part->factor, ") return;"));
      inner *= part->places();
    }
  }
}

}  // namespace imprint::kernels

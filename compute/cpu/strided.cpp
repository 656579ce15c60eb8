#include "compute/cpu/strided.h"

#include "compute/graph/axis_map.h"

namespace imprint::cpu {

using namespace graph;
using namespace tensor;

bool Strided::is_row_major() const {
  std::int64_t expected = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[at(axis)] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

Strided row_major(std::int32_t buffer, const Shape& shape) {
  return {buffer, 0, shape, row_major_strides(shape)};
}

std::optional<Strided> reshaped(const Strided& source, const Shape& shape) {
  Strided result{source.buffer, source.offset, shape, row_major_strides(shape)};
  if (shape.element_count() == 0 || source.is_row_major()) return result;
  // Splits whole loops of the source into axes of the target, from the innermost outward.
  const Loops<1> loops = loops_over<1>(source.shape, {source.strides});
  int loop = loops.depth - 1;
  std::int64_t taken = 1;  // of the loop
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    if (loop >= 0 && taken == loops.extents[at(loop)]) {
      --loop;
      taken = 1;
    }
    if (loop < 0) return {};
    const auto l = static_cast<std::size_t>(loop);
    result.strides[at(axis)] = loops.strides[0][l] * taken;
    taken *= shape[axis];
    if (loops.extents[l] % taken != 0) return {};
  }
  return result;
}

std::optional<Strided> through_view(const GraphNode& view, const Strided& source) {
  if (view.op == Op::reshape) return reshaped(source, view.shape);
  if (view.kind() != OpKind::view) return {};
  Strided result{source.buffer, source.offset, view.shape, {}};
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    const AxisSource from = axis_source(view, source.shape, 0, axis);
    result.strides[at(axis)] = source.strides[at(from.axis)] * from.step;
    result.offset += source.strides[at(from.axis)] * from.start;
  }
  return result;
}

}  // namespace imprint::cpu

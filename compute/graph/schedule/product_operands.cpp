// How products read their operands, and the shared memory that holds them.

#include <algorithm>
#include <optional>

#include "compute/graph/axis_map.h"
#include "compute/graph/schedule/product.h"
#include "compute/graph/strides.h"

namespace imprint::graph {
namespace {

// Whether neighbours along the axis read neighbouring elements of memory: through views, pads and elementwise
// operations, where one operand suffices.
bool is_contiguous(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex index,
                   int axis) {
  const GraphNode& node = graph[index];
  const auto along = [&](NodeIndex input, std::int64_t input_axis) {
    return is_contiguous(graph, materialized, input, static_cast<int>(input_axis));
  };
  std::int64_t behind = 1;
  for (int i = axis + 1; i < node.shape.rank(); ++i) behind *= node.shape[i];
  if (materialized[static_cast<std::size_t>(index)]) return behind == 1;
  if (node.kind() == OpKind::elementwise)
    return std::ranges::any_of(node.inputs, [&](NodeIndex input) { return along(input, axis); });
  if (node.op == Op::reshape) {
    const Shape& source = graph[node.inputs[0]].shape;
    std::int64_t behind_source = 1;
    for (int i = source.rank() - 1; i >= 0; behind_source *= source[i--])
      if (behind_source == behind && source[i] > 1) return along(node.inputs[0], i);
    return false;
  }
  if (node.kind() != OpKind::view && node.op != Op::pad) return false;
  const AxisSource source = axis_source(node, graph[node.inputs[0]].shape, 0, axis);
  return source.step == 1 && along(node.inputs[0], source.axis);
}

// Whether the elements at `width` neighbouring positions along the axis, from a multiple of it, are
// neighbours in memory, or all outside. Eight float16: seen through views, windows and pads. Four float32:
// through other views, such as heads that lie apart.
bool reads_in_vectors(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex index,
                      int axis, std::int32_t width) {
  const GraphNode& node = graph[index];
  if (node.dtype != (width == 8 ? DType::float16 : DType::float32) || node.shape[axis] % width != 0)
    return false;
  const auto elements_behind = [](const Shape& shape, int of) {
    std::int64_t count = 1;
    for (int i = of + 1; i < shape.rank(); ++i) count *= shape[i];
    return count;
  };
  if (materialized[at(index)]) return elements_behind(node.shape, axis) == 1;
  if (node.inputs.empty()) return false;
  const Shape& source = graph[node.inputs[0]].shape;
  const auto along = [&](std::int64_t input_axis) {
    return reads_in_vectors(graph, materialized, node.inputs[0], static_cast<int>(input_axis), width);
  };
  if (node.op == Op::reshape) {
    const std::int64_t behind = elements_behind(node.shape, axis);
    if (materialized[at(node.inputs[0])]) return behind == 1;
    for (int i = source.rank() - 1; i >= 0; --i)
      if (source[i] > 1 && elements_behind(source, i) == behind) return along(i);
    return false;
  }
  if (width == 4 && node.op != Op::permute && node.op != Op::slice) return false;
  if (node.op == Op::pad) return node.ints[2 * at(axis)] % width == 0 && node.floats[0] == 0 && along(axis);
  if (node.kind() != OpKind::view) return false;
  const AxisSource from = axis_source(node, source, 0, axis);
  if (node.op == Op::window && axis == node.shape.rank() - 1)
    return node.ints[2] % width == 0 && node.ints[3] == 1 && along(node.ints[0]);
  if (node.op == Op::window && axis == node.ints[0]) return false;
  if (node.op == Op::expand && source[axis] != node.shape[axis]) return false;
  return from.axis >= 0 && from.step == 1 && from.start % width == 0 && along(from.axis);
}

}  // namespace

OperandLayout operand_layout(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                             NodeIndex matmul, std::size_t slot, std::int32_t most_width) {
  const NodeIndex operand = graph[matmul].inputs[slot];
  const Shape& shape = graph[operand].shape;
  const int rank = shape.rank(), terms = slot == 0 ? rank - 1 : rank - 2,
            lines = slot == 0 ? rank - 2 : rank - 1;
  const auto contiguous = [&](int axis) { return is_contiguous(graph, materialized, operand, axis); };
  // If neither axis is contiguous, the left operand's terms are closer together: weights of a convolution.
  OperandLayout layout{.along_terms = !contiguous(lines) && (slot == 0 || contiguous(terms))};
  const std::optional<Strides> strides = strides_of(graph, materialized, operand);
  if (!strides)
    for (const bool along_terms : {layout.along_terms, !layout.along_terms})
      if (reads_in_vectors(graph, materialized, operand, along_terms ? terms : lines, most_width))
        return {.along_terms = along_terms, .width = most_width};
  if (!strides || !dtype_is_float(graph[strides->memory].dtype)) return layout;
  const int vector_axis = layout.along_terms ? terms : lines;
  for (std::int32_t width = most_width; width >= 4; width /= 2) {
    bool aligned = strides->start % width == 0 && strides->axis[static_cast<std::size_t>(vector_axis)] == 1 &&
                   shape[vector_axis] % width == 0;
    for (int axis = 0; axis < rank; ++axis)
      aligned = aligned && (axis == vector_axis || shape[axis] == 1 ||
                            strides->axis[static_cast<std::size_t>(axis)] % width == 0);
    if (!aligned) continue;
    layout.width = width;
    break;
  }
  return layout;
}

std::optional<MatrixOperand> matrix_operand(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                            NodeIndex matmul, std::size_t slot) {
  const NodeIndex node = graph[matmul].inputs[slot];
  if (graph[node].dtype != DType::float16) return std::nullopt;
  const std::optional<Strides> strides = strides_of(graph, materialized, node);
  if (!strides || graph[strides->memory].dtype != DType::float16) return std::nullopt;
  const int rank = graph[node].shape.rank(), terms = slot == 0 ? rank - 1 : rank - 2,
            lines = slot == 0 ? rank - 2 : rank - 1;
  const auto stride_along = [&](int axis) { return strides->axis[static_cast<std::size_t>(axis)]; };
  MatrixOperand operand{.strides = *strides,
                        .along_terms = stride_along(terms) == 1 && (slot == 0 || stride_along(lines) != 1)};
  operand.stride = stride_along(operand.along_terms ? lines : terms);
  if (stride_along(operand.along_terms ? terms : lines) != 1 || operand.stride < 1) return std::nullopt;
  operand.in_eights = strides->start % 8 == 0 && operand.stride % 8 == 0;
  for (int axis = 0; axis < rank - 2; ++axis)
    operand.in_eights = operand.in_eights && stride_along(axis) % 8 == 0;
  return operand;
}

std::optional<int> packed_operands(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                   NodeIndex matmul) {
  int packed = 0;
  for (std::size_t slot = 0; slot < 2; ++slot) {
    if (graph[graph[matmul].inputs[slot]].dtype != DType::float16) return std::nullopt;
    packed += operand_layout(graph, materialized, matmul, slot, 8).width != 8;
  }
  return packed;
}

UnitMemory unit_memory(const ProductTile& tile) {
  const auto elements = [&](std::int64_t lines) {
    return std::max(lines * (tile.depth / 8 + 1), tile.depth * (lines / 8 + 1));
  };
  UnitMemory memory{.left = elements(tile.rows), .right = elements(tile.columns)};
  const std::int64_t subgroup_rows = 8 * tile.thread_rows, fours = tile.thread_columns,
                     matrix_row = tile.invocations() / 32 * 16 * (fours + 2),
                     operands = memory.left + memory.right;
  for (std::int32_t rows = 2; rows <= subgroup_rows / 16 && rows * matrix_row <= operands; rows *= 2)
    memory.scratch_rows = rows;
  memory.total = std::max(operands, memory.scratch_rows * matrix_row);
  return memory;
}

// Four rows or columns per element, and one extra element between terms against bank conflicts.
std::int64_t product_shared_bytes(const ProductTile& tile) {
  if (tile.units == MatrixUnits::subgroup) return 16 * unit_memory(tile).total;
  if (tile.of_patches) return 16 * patch_memory(tile);
  return 16 * tile.depth * (tile.rows / 4 + 1 + tile.columns / 4 + 1);
}

}  // namespace imprint::graph

#include "compute/graph/schedule/winograd.h"

#include "compute/base/at.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kKernel = 3;

bool is_window_of_three(const GraphNode& node, int axis) {
  return node.op == Op::window && node.ints[0] == axis && node.ints[1] == kKernel && node.ints[2] == 1 &&
         node.ints[3] == 1;
}

// Whether all images have one left operand.
bool shares_left(const Graph& graph, const GraphNode& product) {
  const GraphNode& left = graph[product.inputs[0]];
  for (int axis = 0; axis < product.shape.rank() - 2; ++axis)
    if (product.shape[axis] > 1 && (left.op != Op::expand || graph[left.inputs[0]].shape[axis] != 1))
      return false;
  return true;
}

// [leading..., channels, height, width, 3, 3], seen through a reshape that keeps the last axes.
bool has_windows(const Graph& graph, NodeIndex node) {
  const Shape& shape = graph[node].shape;
  if (graph[node].op == Op::reshape) {
    const Shape& source = graph[graph[node].inputs[0]].shape;
    for (int i = 1; i <= 4; ++i)
      if (source.rank() < 5 || source[source.rank() - i] != shape[shape.rank() - i]) return false;
    node = graph[node].inputs[0];
  }
  const int rank = graph[node].shape.rank();
  return is_window_of_three(graph[node], rank - 3) &&
         is_window_of_three(graph[graph[node].inputs[0]], rank - 4);
}

}  // namespace

std::optional<WindowsOfThree> windows_of_three(const Graph& graph, NodeIndex matmul) {
  const GraphNode& product = graph[matmul];
  const GraphNode& right = graph[product.inputs[1]];
  const int batches = product.shape.rank() - 2;
  if (product.op != Op::matmul || product.blocks > 0 || product.shape.is_named() || right.shape.is_named() ||
      product.dtype != DType::float32 || right.dtype != DType::float32 ||
      graph[product.inputs[0]].dtype != DType::float32 || right.op != Op::reshape ||
      !shares_left(graph, product))
    return std::nullopt;
  WindowsOfThree found{.windows = right.inputs[0]};
  const GraphNode& windows = graph[found.windows];
  const int rank = windows.shape.rank(), leading = rank - 5;
  if (windows.op != Op::permute || leading < 0) return std::nullopt;
  constexpr int kOrder[] = {3, 4, 0, 1, 2};  // of the last five axes
  for (int axis = 0; axis < rank; ++axis)
    if (windows.ints[at(axis)] != (axis < leading ? axis : leading + kOrder[axis - leading]))
      return std::nullopt;
  found.channels = windows.shape[rank - 3];
  found.height = windows.shape[rank - 2];
  found.width = windows.shape[rank - 1];
  std::int64_t images = 1;
  for (int axis = 0; axis < leading; ++axis) found.images *= windows.shape[axis];
  for (int axis = 0; axis < batches; ++axis) images *= right.shape[axis];
  const bool fits = images == found.images && right.shape[batches] == kKernel * kKernel * found.channels &&
                    right.shape[batches + 1] == found.height * found.width && found.channels % 8 == 0;
  return fits && has_windows(graph, windows.inputs[0]) ? std::optional(found) : std::nullopt;
}

bool reads_images(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul) {
  NodeIndex node = graph[matmul].inputs[1];
  for (; !materialized[at(node)]; node = graph[node].inputs[0])
    if (graph[node].kind() != OpKind::view && graph[node].op != Op::pad) return false;
  return true;
}

}  // namespace imprint::graph

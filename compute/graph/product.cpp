#include "compute/graph/product.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace imprint {
namespace {

// What was measured of a tile on an NVIDIA H200 (driver 580): of the device's arithmetic, with many of them on a unit at a time, on products of 4096;
// and how many a unit has room for.
struct Measured {
  ProductTile tile;
  double efficiency;
  double resident;
};
constexpr std::array kTiles{Measured{{128, 128, 16, 8, 16}, 0.69, 2}, Measured{{64, 128, 16, 8, 8}, 0.61, 4}, Measured{{64, 64, 16, 8, 8}, 0.50, 6},
                            Measured{{64, 64, 16, 4, 8}, 0.50, 4}, Measured{{32, 64, 16, 4, 4}, 0.45, 6}};

// Cycles of a turn of a workgroup that has a unit for itself: the way to memory and two barriers, and the multiply-adds of an invocation, whose latencies
// one workgroup's few invocations do not hide.
constexpr double kTurnCycles = 700, kCyclesPerOperation = 1.25;
constexpr double kLanes = 128;   // multiply-adds of a unit in a cycle

double cycles(const ProductShape& shape, const Measured& measured, const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  const double units = static_cast<double>(options.region_groups), steps = std::ceil(static_cast<double>(shape.depth) / tile.depth);
  const double workgroups = std::ceil(static_cast<double>(tile_count(shape, tile)) / units);   // of a unit
  const double alone = kTurnCycles + kCyclesPerOperation * tile.thread_rows * tile.thread_columns * tile.depth;
  const double operations = tile.rows * tile.columns * tile.depth + tile.invocations() * options.product_turn_operations;
  const double together = operations / (kLanes * measured.efficiency);
  return steps * std::max(std::ceil(workgroups / measured.resident) * alone, workgroups * together);
}

// Four rows or columns to an element, and one element between terms against bank conflicts.
std::int64_t shared_bytes(const ProductTile& tile) { return 16 * tile.depth * (tile.rows / 4 + 1 + tile.columns / 4 + 1); }

}  // namespace

ProductShape product_shape(const Graph& graph, NodeIndex matmul) {
  const Shape& shape = graph[matmul].shape;
  const int rank = shape.rank();
  ProductShape product{1, shape[rank - 2], shape[rank - 1], fold_length(graph, matmul)};
  for (int axis = 0; axis < rank - 2; ++axis) product.batch *= shape[axis];
  return product;
}

ProductTile choose_tile(const ProductShape& shape, const FusionOptions& options) {
  const Measured* best = nullptr;
  for (const Measured& measured : kTiles)
    if (shared_bytes(measured.tile) <= options.region_shared_bytes && (!best || cycles(shape, measured, options) < cycles(shape, *best, options)))
      best = &measured;
  return best->tile;   // the smaller ones fit everywhere
}

}  // namespace imprint

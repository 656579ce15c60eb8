#pragma once
// Cost of a product of float32 with each tile, in cycles of a unit.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/product.h"

namespace imprint::graph::tile_cost {

// Measurements of a tile on an NVIDIA H200 (driver 580): its speed relative to the device's arithmetic, on
// products with many tiles per unit, that of products of windows (0: never chosen for them), and how many
// tiles fit on a unit.
struct Measured {
  ProductTile tile;
  double efficiency, of_windows;
  double resident;
};
inline constexpr ProductTile kSmallTile{32, 64, 16, 4, 4};
// For windows, and for single products of few terms that leave half of the units idle. With more tiles, and
// in parts of long products, others were faster: a step of Nature's network took 804 us with it, else 775 us.
inline constexpr ProductTile kTileOfFew{32, 32, 32, 4, 4, MatrixUnits::none, 4};
inline constexpr std::array kTiles{Measured{{128, 128, 16, 8, 16}, 0.70, 0.70, 2},
                                   Measured{{64, 128, 16, 8, 8}, 0.68, 0.67, 4},
                                   Measured{{64, 64, 16, 8, 8}, 0.67, 0.65, 6},
                                   Measured{{64, 64, 32, 8, 8, MatrixUnits::none, 4}, 0.63, 0, 2},
                                   Measured{{64, 64, 16, 4, 8}, 0.66, 0.54, 4},
                                   Measured{kSmallTile, 0.60, 0.46, 6},
                                   Measured{kTileOfFew, 0.35, 0.47, 4}};

inline constexpr const Measured& kTileOfMany = kTiles[1];  // in pairs

// Tiles of patches (winograd.h): cycles of a workgroup at its start and end, and of each turn, fitted to
// convolutions of 32 and 64 channels on an H200.
struct OfPatches {
  ProductTile tile;
  double fixed, per_turn;
};
inline constexpr std::array kPatchTiles{
    OfPatches{{64, 128, 8, 4, 4, MatrixUnits::none, 1, true}, 4800, 5040},
    OfPatches{{32, 256, 8, 4, 4, MatrixUnits::none, 1, true}, 4900, 5200},
    OfPatches{{32, 128, 8, 4, 4, MatrixUnits::none, 1, true}, 2430, 3210}};

// Cycles that a workgroup takes longer where rows of places are no whole fours: it stores outputs one by one.
// A step with such a gradient of 32 channels took 452 instead of 411 us in patches. Inference of Nature's
// network with 256 pictures, which ends in such a convolution of 7 x 7 places, takes 221 instead of 242 us.
inline constexpr double kOutputsOneByOne = 16000;

// Fitted to 35 times on an H100: five products of a language model, each with seven tiles. Cycles per turn of
// a workgroup alone on a unit: memory latency and two barriers, then the multiply-adds of one invocation. One
// workgroup has too few invocations to hide their latency.
inline constexpr double kTurnCycles = 270, kCyclesPerOperation = 1.18;
inline constexpr double kLanes = 128;  // multiply-adds per unit and cycle
inline constexpr double kIssuers = 4;  // of a unit, each for its own subgroups
// To start, to load the code of each multiply-add from memory, and per sum that is stored.
inline constexpr double kStartCycles = 2000, kCyclesOfCode = 15, kCyclesPerSum = 1;

// The same of windows, by an older fit to convolutions. With the constants above the gradients of nine
// convolutions took 9 % longer.
inline constexpr double kWindowTurnCycles = 700, kWindowCyclesPerOperation = 1.25;

// Per turn, without waiting.
inline double turn_cycles(const Measured& measured, double efficiency, const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  const double operations =
      tile.rows * tile.columns * tile.depth + tile.invocations() * options.product_turn_operations;
  return operations / (kLanes * efficiency);
}

inline double fixed_cycles(const ProductTile& tile) {
  return kStartCycles + kCyclesOfCode * tile.thread_rows * tile.thread_columns * tile.depth / tile.slices;
}

inline double cycles(const ProductShape& shape, const Measured& measured, const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  const double units = static_cast<double>(options.region_groups),
               steps = std::ceil(static_cast<double>(shape.depth) / tile.depth);
  const double workgroups = std::ceil(static_cast<double>(tile_count(shape, tile)) / units);  // per unit
  const double alone =
      kTurnCycles + kCyclesPerOperation * tile.thread_rows * tile.thread_columns * tile.depth / tile.slices;
  const double rounds = std::ceil(workgroups / measured.resident);
  if (shape.of_windows) {
    const double in_turn =
        kWindowTurnCycles + kWindowCyclesPerOperation * tile.thread_rows * tile.thread_columns * tile.depth;
    // Slices hide latencies of few workgroups. With more they were not measured.
    const double unknown = tile.slices > 1 && rounds > 1 ? 100 : 1;
    return unknown * steps *
           std::max(rounds * in_turn, workgroups * turn_cycles(measured, measured.of_windows, options));
  }
  const double together = turn_cycles(measured, measured.efficiency, options);
  if (options.product_turn_operations > 0 || tile.units != MatrixUnits::none)
    return steps * std::max(rounds * alone, workgroups * together);
  const double subgroups = tile.invocations() / 32.0,
               busiest = std::ceil(workgroups * subgroups / kIssuers) * kIssuers / subgroups;
  return steps * std::max(rounds * alone, busiest * together) + fixed_cycles(tile) +
         workgroups * kCyclesPerSum * tile.rows * tile.columns;
}

// Cycles of several products in one dispatch, whose workgroups fill the units together.
inline double cycles_together(const std::vector<ProductShape>& shapes, const Measured& measured,
                              const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  double turns = 0, most = 0, workgroups = 0;
  for (const ProductShape& shape : shapes) {
    const double own = static_cast<double>(tile_count(shape, tile));
    workgroups += own;
    turns += own * std::ceil(static_cast<double>(shape.depth) / tile.depth);
    most = std::max(most, cycles({1, tile.rows, tile.columns, shape.depth, shape.of_windows}, measured,
                                 options));  // per workgroup
  }
  const double units = static_cast<double>(options.region_groups);
  const bool of_windows = std::ranges::any_of(shapes, &ProductShape::of_windows);
  if (of_windows) return std::max(most, turns / units * turn_cycles(measured, measured.of_windows, options));
  return std::max(most, turns / units * turn_cycles(measured, measured.efficiency, options) +
                            fixed_cycles(tile) +
                            workgroups / units * kCyclesPerSum * tile.rows * tile.columns);
}

}  // namespace imprint::graph::tile_cost

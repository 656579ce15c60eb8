#include "compute/graph/regions/region_tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace imprint::graph {
namespace {

// - A warp's vector load from shared memory takes three clocks.
// - A warp's float load, and a scheduler's multiply-add for a warp, take one.
// - Weights outside shared memory stall every turn of eight terms.
// Operations that follow a product form a chain for each output of an invocation.
double cost_of(const VectorProduct& product, const VectorTile& tile) {
  constexpr double kWarp = 32, kSchedulers = 4, kBarrier = 60, kSharedWait = 15, kFarWait = 300, kChain = 5;
  const auto products = static_cast<double>(product.products), parts = static_cast<double>(tile.parts),
             invocations = static_cast<double>(product.invocations),
             outputs = static_cast<double>(product.rows * product.columns);
  const double height = tile.rows, width = tile.columns;
  const double warps = std::ceil(outputs / (height * width) * parts / kWarp),
               steps = static_cast<double>(product.terms) / (4 * parts),
               turns = std::ceil(warps * kWarp / invocations), chain = kChain * product.operations_behind;
  double cost = warps * steps * 3.0 * (products * height + (tile.columns == 4 ? 4 : 4.0 / 3));
  cost += std::ceil(warps / kSchedulers) * steps * 4 * products * height * width +
          turns * steps * (product.is_far ? kFarWait : kSharedWait);
  cost += chain * (tile.parts > 1 ? std::ceil(outputs / invocations) : turns * height * width);
  if (tile.parts > 1) cost += kBarrier + products * (warps * height * width + outputs * parts / kWarp);
  return cost;
}

}  // namespace

std::vector<VectorTile> vector_tiles(const VectorProduct& product) {
  constexpr std::int32_t kMostParts = 8;  // longer sums add more code to a cold start than they save
  std::vector<VectorTile> found;
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 1}, {4, 1}, {1, 4}, {2, 4}, {4, 4}, {8, 4}}) {
    if (product.rows % height != 0 || product.columns % width != 0) continue;
    // Sums of several products stay in registers beside each other.
    if (product.products > 1 && product.products * height * width > 32) continue;
    const std::int64_t tiles = product.rows / height * product.columns / width;
    for (std::int32_t parts = 1; parts <= kMostParts && (parts == 1 || tiles * parts <= product.invocations);
         parts *= 2) {
      const std::int64_t scratch = parts * product.products * product.rows * product.columns;
      if (parts > 1 && (product.terms % (4 * parts) != 0 || scratch > product.most_scratch)) break;
      VectorTile tile{height, width, parts, 0};
      tile.cost = cost_of(product, tile);
      found.push_back(tile);
    }
  }
  return found;
}

void choose_other_tiles(RegionStage& stage, const Region& region, std::int64_t rows, std::int64_t columns,
                        std::int64_t terms) {
  const bool outer = stage.kind == RegionStage::Kind::outer_product;
  const std::int64_t outputs = rows * columns;
  // Each invocation keeps one tile through all turns; region_find.cpp ensures that there are enough
  // invocations.
  if (outer && region.turns > 1) {
    if (columns % 4 == 0) stage.tile_columns = 4;
    stage.columns_beside = stage.tile_columns == 4;
    // Contiguous elements of both sides load as one vector, unless that leaves most invocations without a
    // tile.
    if (stage.columns_beside && rows % 4 == 0 && rows * columns >= 4 * region.invocations)
      stage.tile_rows = 4;
    while ((rows + stage.tile_rows - 1) / stage.tile_rows * (columns / stage.tile_columns) >
           region.invocations)
      stage.tile_rows *= 2;
    return;
  }
  if (!outer && 2 * outputs <= region.invocations) {
    const std::int64_t most =
        std::min<std::int64_t>(region.invocations / outputs, std::max<std::int64_t>(1, terms / 4));
    stage.parts = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
    return;
  }
  const auto full = [&] {
    return outputs / (stage.tile_rows * stage.tile_columns) >= 2 * region.invocations;
  };
  if (region.vectors && outer) {  // contiguous elements load and store as one
    if (columns % 4 == 0 && outputs / 4 >= region.invocations) stage.tile_columns = 4;
    stage.columns_beside = stage.tile_columns == 4;
    if (rows % 4 == 0 && outputs / (4 * stage.tile_columns) >= region.invocations / 2) stage.tile_rows = 4;
    while (full() && stage.tile_rows < 8 && rows % (2 * stage.tile_rows) == 0) stage.tile_rows *= 2;
    if (stage.columns_beside) return;
  }
  // Rows first: weights that an invocation loads then serve several rows.
  while (full() && stage.tile_rows * stage.tile_columns < 16) {
    if (stage.tile_rows <= stage.tile_columns && stage.tile_rows * 2 <= rows && stage.tile_rows < 4)
      stage.tile_rows *= 2;
    else if (stage.tile_columns * 2 <= columns && stage.tile_columns < 4)
      stage.tile_columns *= 2;
    else
      break;
  }
}

}  // namespace imprint::graph

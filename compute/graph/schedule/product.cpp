#include "compute/graph/schedule/product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "compute/graph/schedule/cost.h"
#include "compute/graph/schedule/tile_cost.h"
#include "compute/graph/schedule/winograd.h"

namespace imprint::graph {
namespace {

using namespace tile_cost;

constexpr Measured kOnMatrixUnits{kMatrixUnitTile, 3.0, 3.0, 2};

// Launch cost of a dependent kernel, in cycles. Bytes per cycle between one unit and the memory that all
// units share.
constexpr double kLaunchCycles = 5000, kBytesPerCycle = 16;
constexpr std::int64_t kLeastDepth = 1024, kLeastStretch = 64, kStretchStep = 32;  // terms
constexpr std::int64_t kFoldedAtOnce = 1 << 16;  // partial results; folds of more are split (fold_split.h)

// Tiles on matrix units, through GL_KHR_cooperative_matrix and GL_NV_cooperative_matrix2. Figures are
// relative to the device's arithmetic without matrix units. `ragged`: for partial tiles of a workgroup's
// matrix, whose loads are clamped.
struct OnUnits {
  ProductTile tile;
  double efficiency, ragged;
};
constexpr std::array kSubgroupTiles{OnUnits{{128, 256, 32, 8, 8, MatrixUnits::subgroup}, 4.33, 4.33},
                                    OnUnits{{128, 128, 32, 8, 16, MatrixUnits::subgroup}, 4.2, 4.2},
                                    OnUnits{kMatrixUnitTile, 4.07, 4.07},
                                    OnUnits{{64, 128, 32, 8, 8, MatrixUnits::subgroup}, 3.2, 3.2},
                                    OnUnits{{64, 64, 32, 4, 8, MatrixUnits::subgroup}, 2.5, 2.5}};
// Tiles for products of places by channels (channels_last.h) besides: of few channels, and of few places,
// where long turns wait less often.
constexpr std::array kPlaceTiles{OnUnits{{128, 64, 32, 8, 8, MatrixUnits::subgroup}, 3.0, 3.0},
                                 OnUnits{{128, 32, 32, 4, 8, MatrixUnits::subgroup}, 1.8, 1.8},
                                 OnUnits{{64, 64, 64, 4, 8, MatrixUnits::subgroup}, 2.5, 2.5},
                                 OnUnits{{32, 64, 64, 4, 4, MatrixUnits::subgroup}, 1.8, 1.8}};
constexpr std::array kWorkgroupTiles{OnUnits{{128, 256, 64, 8, 16, MatrixUnits::workgroup}, 4.2, 1.77},
                                     OnUnits{{128, 128, 32, 8, 16, MatrixUnits::workgroup}, 3.0, 2.7},
                                     OnUnits{{64, 128, 32, 8, 8, MatrixUnits::workgroup}, 2.8, 2.4},
                                     OnUnits{{64, 64, 64, 4, 8, MatrixUnits::workgroup}, 2.3, 1.8}};
// Tiles of products that are no places by channels, with GL_NV_cooperative_matrix. `resident`: workgroups on
// a unit.
struct OfOlderDialect {
  ProductTile tile;
  double efficiency, resident;
};
constexpr std::array kOlderDialect{OfOlderDialect{kMatrixUnitTile, 6.0, 5},
                                   OfOlderDialect{{128, 128, 64, 8, 8, MatrixUnits::subgroup}, 4.4, 3},
                                   OfOlderDialect{{64, 128, 32, 8, 8, MatrixUnits::subgroup}, 6.0, 4},
                                   OfOlderDialect{{64, 64, 32, 4, 8, MatrixUnits::subgroup}, 6.0, 5},
                                   OfOlderDialect{{64, 64, 64, 4, 8, MatrixUnits::subgroup}, 4.35, 3}};

// Cycles of such products in one dispatch. Fitted to the products of two language models on an H100: with the
// tiles that it chooses the smaller takes 3 % more time than with the fastest, the larger no more. Workgroups
// on a unit start and wait for each turn's loads together; their arithmetic and their stores add up. is_part:
// sums go to memory unchanged.
double cycles_of_older_dialect(std::span<const ProductShape> shapes, const OfOlderDialect& measured,
                               const FusionOptions& options, bool is_part) {
  constexpr double kStart = 1900, kTurn = 890, kPerSum = 0.25;
  const ProductTile& tile = measured.tile;
  const double sums = tile.rows * tile.columns;
  double count = 0, work = 0, most_turns = 0;
  for (const ProductShape& shape : shapes) {
    const double own = static_cast<double>(tile_count(shape, tile)),
                 turns = std::ceil(static_cast<double>(shape.depth) / tile.depth);
    count += own;
    most_turns = std::max(most_turns, turns);
    work += own *
            (turns * sums * tile.depth / (kLanes * measured.efficiency) + kPerSum * sums * (is_part ? 1 : 2));
  }
  const double workgroups = std::ceil(count / static_cast<double>(options.region_groups)),
               rounds = std::ceil(workgroups / measured.resident);
  return rounds * (kStart + kTurn * most_turns) + workgroups * work / count;
}

// Cycles per turn of 32 terms, in addition to the arithmetic, for any number of workgroups.
constexpr double kUnitTurnCycles = 300;

double cycles_on_units(const ProductShape& shape, const OnUnits& measured, const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  const double turns = std::ceil(static_cast<double>(shape.depth) / tile.depth) * tile.depth / 32;
  const double workgroups =
      std::ceil(static_cast<double>(tile_count(shape, tile)) / static_cast<double>(options.region_groups));
  const bool whole =
      shape.rows % tile.rows == 0 && shape.columns % tile.columns == 0 && shape.depth % tile.depth == 0;
  return turns * (kUnitTurnCycles + workgroups * tile.rows * tile.columns * 32 /
                                        (kLanes * (whole ? measured.efficiency : measured.ragged)));
}

bool fits_device(const ProductTile& tile, const FusionOptions& options) {
  return product_shared_bytes(tile) <= options.region_shared_bytes &&
         tile.invocations() <= options.most_invocations;
}

// Tiles without slices have at most as many invocations as every device can have.
bool fits(const Measured& measured, const ProductShape& shape, const FusionOptions& options) {
  const ProductTile& tile = measured.tile;
  if ((shape.of_windows ? measured.of_windows : measured.efficiency) == 0) return false;
  const bool of_few = tile == kTileOfFew && !shape.of_windows;
  if (of_few &&
      (shape.batch > 1 || shape.depth >= kLeastDepth || 2 * tile_count(shape, tile) > options.region_groups))
    return false;
  return product_shared_bytes(tile) <= options.region_shared_bytes &&
         (tile.slices == 1 || tile.invocations() <= options.most_invocations);
}

// Whether a product of places by channels was measured with the tile. With the older extension no other one
// of kMatrixUnitTile's size was.
bool suits_places(const ProductTile& tile, const FusionOptions& options) {
  return fits_device(tile, options) &&
         (options.matrix_tiles || tile == kMatrixUnitTile ||
          tile.rows * tile.columns < kMatrixUnitTile.rows * kMatrixUnitTile.columns);
}

// Cycles of a product of places by channels. In each turn a workgroup waits for what it loads and for its own
// multiply-adds, the first time for loads alone, and at its end for what its results are combined with.
// Workgroups on one unit hide that from each other, until the addresses of windows fill the unit.
double cycles_of_places(const ProductShape& shape, const OnUnits& measured, const FusionOptions& options) {
  constexpr double kLoads = 500, kPerMatrix = 95, kStart = 1200, kPerStore = 400, kWithWindows = 0.63;
  constexpr std::int64_t kUnitThreads = 512;  // whose registers fit a unit
  constexpr std::int64_t kMatrix = 16 * 16 * 16, kSumsPerStore = 128;
  const ProductTile& tile = measured.tile;
  const std::int64_t subgroups = tile.invocations() / 32;
  const double workgroups =
      std::ceil(static_cast<double>(tile_count(shape, tile)) / static_cast<double>(options.region_groups));
  const double steps = std::ceil(static_cast<double>(shape.depth) / tile.depth),
               turns = std::ceil(workgroups * tile.invocations() / kUnitThreads);
  const double matrices = static_cast<double>(tile.rows * tile.columns * tile.depth / subgroups / kMatrix),
               stores = static_cast<double>(tile.rows * tile.columns / subgroups / kSumsPerStore),
               arithmetic = static_cast<double>(tile.rows * tile.columns * tile.depth) /
                            (kLanes * measured.efficiency * kWithWindows);
  return turns * (kStart + kPerStore * stores) +
         steps * std::max(turns * (kLoads + kPerMatrix * matrices), workgroups * arithmetic);
}

std::optional<double> cycles_of_patches(const Graph& graph, NodeIndex matmul, const OfPatches& measured,
                                        const FusionOptions& options) {
  const std::optional<WindowsOfThree> windows = windows_of_three(graph, matmul);
  if (!windows || options.product_turn_operations > 0 || !fits_device(measured.tile, options))
    return std::nullopt;
  const double workgroups = std::ceil(static_cast<double>(workgroup_count(graph, matmul, measured.tile)) /
                                      static_cast<double>(options.region_groups)),
               turns = static_cast<double>(windows->channels / measured.tile.depth),
               one_by_one = windows->width % 4 == 0 ? 0 : kOutputsOneByOne;
  return workgroups * (measured.fixed + one_by_one + turns * measured.per_turn);
}

// With the tile that suits best.
double least_cycles_of_older_dialect(const ProductShape& shape, const FusionOptions& options, bool is_part) {
  double least = std::numeric_limits<double>::infinity();
  for (const OfOlderDialect& measured : kOlderDialect)
    if (fits_device(measured.tile, options))
      least = std::min(least, cycles_of_older_dialect({&shape, 1}, measured, options, is_part));
  return least;
}

// With the tile that suits best.
double least_cycles_of_places(const ProductShape& shape, const FusionOptions& options) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::span<const OnUnits> tiles : {std::span<const OnUnits>(kSubgroupTiles), {kPlaceTiles}})
    for (const OnUnits& measured : tiles)
      if (suits_places(measured.tile, options))
        least = std::min(least, cycles_of_places(shape, measured, options));
  return least;
}

// Whether each workgroup of a long product of places has a unit for itself, and most units have one: it waits
// for memory in each turn, longer than estimated. In parts, eleven such convolutions of ResNet-50 save 148 us
// of 3,091 on an H200.
bool places_wait(const ProductShape& shape, const FusionOptions& options) {
  const std::int64_t workgroups = tile_count(shape, kMatrixUnitTile);
  return options.half_values && shape.depth >= kLeastDepth && workgroups <= options.region_groups &&
         2 * workgroups > options.region_groups;
}

// Windows of one element, of a convolution of 1 x 1, are no windows: their elements lie side by side.
bool reads_windows(const Graph& graph, NodeIndex node) {
  const auto is_wide = [&] {
    const GraphNode& view = graph[node];
    return view.op == Op::window && (view.ints[1] > 1 || view.ints[2] > 1);
  };
  while (graph[node].kind() == OpKind::view && !is_wide()) node = graph[node].inputs[0];
  return is_wide();
}

}  // namespace

ProductShape product_shape(const Graph& graph, NodeIndex matmul) {
  const Shape& shape = graph[matmul].shape;
  const int rank = shape.rank();
  ProductShape product{1, shape[rank - 2], shape[rank - 1], fold_length(graph, matmul)};
  for (int axis = 0; axis < rank - 2; ++axis) product.batch *= shape[axis];
  if (joins_columns(graph, matmul)) product.columns *= std::exchange(product.batch, 1);
  product.of_windows =
      reads_windows(graph, graph[matmul].inputs[0]) || reads_windows(graph, graph[matmul].inputs[1]);
  return product;
}

bool joins_columns(const Graph& graph, NodeIndex matmul) {
  constexpr std::int64_t kWholeTiles = 128;  // columns of which no tile wastes any
  const Shape& shape = graph[matmul].shape;
  const GraphNode& left = graph[graph[matmul].inputs[0]];
  const int rank = shape.rank();
  std::int64_t batch = 1;
  for (int axis = 0; axis < rank - 2; ++axis) {
    batch *= shape[axis];
    if (shape[axis] > 1 && (left.op != Op::expand || graph[left.inputs[0]].shape[axis] != 1)) return false;
  }
  return batch > 1 && shape[rank - 1] % kWholeTiles != 0;
}

std::string product_tile_text(const ProductTile& tile) {
  std::string text;
  for (std::int32_t extent : {tile.rows, tile.columns, tile.depth}) text += std::to_string(extent) + " x ";
  if (tile.of_patches) return text.substr(0, text.size() - 3) + " of patches";
  return text.substr(0, text.size() - 3) + " by " + std::to_string(tile.thread_rows) + " x " +
         std::to_string(tile.thread_columns) +
         (tile.slices > 1                       ? " in " + std::to_string(tile.slices) + " slices"
          : tile.units == MatrixUnits::none     ? ""
          : tile.units == MatrixUnits::subgroup ? " on matrix units"
                                                : " as a matrix");
}

namespace {

// Many simultaneous loads plus many sums need too many registers.
bool loads_one_by_one(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul) {
  return operand_layout(graph, materialized, matmul, 0, 4).width == 1 ||
         operand_layout(graph, materialized, matmul, 1, 4).width == 1;
}

}  // namespace

ProductTile choose_tile(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul,
                        const FusionOptions& options, std::vector<VariantChoice>& made) {
  const ProductShape shape = product_shape(graph, matmul);
  const bool one_by_one = loads_one_by_one(graph, materialized, matmul);
  std::vector<ProductTile> tiles;
  std::vector<Variant> variants;
  const auto add = [&](const ProductTile& tile, double cost) {
    tiles.push_back(tile);
    variants.push_back({product_tile_text(tile), cost});
  };
  const std::optional<int> packed = packed_operands(graph, materialized, matmul);
  const bool has_units = options.matrix_units && packed;
  const bool has_workgroups = options.matrix_workgroups && !joins_columns(graph, matmul) &&
                              matrix_operand(graph, materialized, matmul, 0) &&
                              matrix_operand(graph, materialized, matmul, 1);
  const bool of_places = graph[matmul].stays_tiled;
  // With the older extension, products with packed operands or joined columns were only measured in that
  // tile; it wastes half of itself on few rows.
  const bool of_older = has_units && suits_older_dialect(graph, materialized, matmul, options);
  for (const OfOlderDialect& measured : kOlderDialect)
    if (of_older && fits_device(measured.tile, options))
      add(measured.tile, cycles_of_older_dialect({&shape, 1}, measured, options, false));
  for (const OnUnits& measured : kSubgroupTiles) {
    const bool known = options.matrix_tiles || measured.tile == kMatrixUnitTile ||
                       (shape.rows <= measured.tile.rows && measured.tile.rows < kMatrixUnitTile.rows);
    if (has_units && !of_places && !of_older && known && fits_device(measured.tile, options))
      add(measured.tile, (1 + *packed) * cycles_on_units(shape, measured, options));
  }
  for (const std::span<const OnUnits> of : {std::span<const OnUnits>(kSubgroupTiles), {kPlaceTiles}})
    for (const OnUnits& measured : of)
      if (has_units && of_places && suits_places(measured.tile, options))
        add(measured.tile, (1 + *packed) * cycles_of_places(shape, measured, options));
  if (has_workgroups)
    for (const OnUnits& measured : kWorkgroupTiles)
      add(measured.tile, cycles_on_units(shape, measured, options));
  constexpr double kBesideUnits = 1000;  // no float16 product was measured faster without matrix units
  for (const Measured& measured : kTiles) {
    constexpr std::int32_t kSumsBesideLoads = 32;
    constexpr double kSpills = 100;
    const bool spills = one_by_one && options.product_turn_operations == 0 &&
                        measured.tile.thread_rows * measured.tile.thread_columns > kSumsBesideLoads;
    if (fits(measured, shape, options))
      add(measured.tile, cycles(shape, measured, options) * (spills ? kSpills : 1) *
                             (has_units || has_workgroups ? kBesideUnits : 1));
  }
  for (const OfPatches& measured : kPatchTiles)
    if (const auto cost = cycles_of_patches(graph, matmul, measured, options);
        cost && reads_images(graph, materialized, matmul))
      add(measured.tile, *cost);
  const std::string kernel = "product " + std::to_string(shape.batch) + " x " + std::to_string(shape.rows) +
                             " x " + std::to_string(shape.columns) + " of " + std::to_string(shape.depth) +
                             " " + signature_down_to_memory(graph, materialized, std::span(&matmul, 1));
  return tiles[choose_variant(options.variants, kernel, variants, made)];
}

bool suits_older_dialect(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul,
                         const FusionOptions& options) {
  return !options.matrix_tiles && !graph[matmul].stays_tiled && !joins_columns(graph, matmul) &&
         packed_operands(graph, materialized, matmul) == 0;
}

namespace {

double workgroups_per_unit(const std::vector<ProductShape>& shapes, const ProductTile& tile,
                           const FusionOptions& options) {
  double workgroups = 0;
  for (const ProductShape& shape : shapes)
    workgroups += static_cast<double>(tile_count(shape, tile)) / static_cast<double>(options.region_groups);
  return workgroups;
}

// Whether a pair's tail of workgroups that run alone is short beside the rest, even in large tiles. These
// load less per multiply-add than the smaller ones that the estimate prefers for parts: the pairs of
// gradients of six layers of 384 took 420 us less of a step on an H100.
bool fill_units_often(const std::vector<ProductShape>& shapes, const Measured& large,
                      const FusionOptions& options) {
  constexpr double kOften = 5;
  return shapes.size() == 2 &&
         std::ranges::none_of(
             shapes,
             [&](const ProductShape& shape) { return shape.of_windows || !fits(large, shape, options); }) &&
         workgroups_per_unit(shapes, large.tile, options) >= kOften;
}

// Whether products of one dispatch take less time in tiles with slices than in the smallest ones. Those are
// four times as small and load twice as much per multiply-add, but leave fewer units idle at the end.
bool slices_are_faster(const std::vector<ProductShape>& shapes, const Measured& sliced,
                       const Measured& smallest, const FusionOptions& options) {
  constexpr double kFaster = 1.08;       // than estimated, on an H200, in four pairs of gradients
  if (shapes.size() != 2) return false;  // not measured
  for (const ProductShape& shape : shapes)
    if (!fits(sliced, shape, options)) return false;
  const double workgroups = workgroups_per_unit(shapes, sliced.tile, options);
  return cycles_together(shapes, sliced, options) * std::ceil(workgroups) / workgroups <
         cycles_together(shapes, smallest, options) * kFaster;
}

std::optional<ProductTile> shared_tile_of_older_dialect(const std::vector<ProductShape>& shapes,
                                                        const std::vector<ProductTile>& tiles,
                                                        const FusionOptions& options) {
  double least = 0;  // of dispatches of their own
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto own = std::ranges::find(kOlderDialect, tiles[i], &OfOlderDialect::tile);
    if (own == kOlderDialect.end()) return std::nullopt;
    least += cycles_of_older_dialect({&shapes[i], 1}, *own, options, false) + kLaunchCycles;
  }
  std::optional<ProductTile> shared;
  for (const OfOlderDialect& measured : kOlderDialect) {
    if (!fits_device(measured.tile, options)) continue;
    const double cost = cycles_of_older_dialect(shapes, measured, options, false) + kLaunchCycles;
    if (cost >= least) continue;
    least = cost;
    shared = measured.tile;
  }
  return shared;
}

// The tile that suits all workgroups of equal products of places by channels, such as query, key and value.
// The one that suits a product alone has more workgroups than units. An encoder of 12 layers takes 738
// instead of 767 us on an H200.
std::optional<ProductTile> shared_tile_of_places(const std::vector<ProductShape>& shapes,
                                                 const FusionOptions& options) {
  ProductShape all = shapes.front();
  for (const ProductShape& shape : shapes)
    if (shape.batch != all.batch || shape.rows != all.rows || shape.columns != all.columns ||
        shape.depth != all.depth || shape.of_windows)
      return std::nullopt;
  all.batch *= static_cast<std::int64_t>(shapes.size());
  std::pair least(std::numeric_limits<double>::infinity(), ProductTile());
  for (const std::span<const OnUnits> tiles : {std::span<const OnUnits>(kSubgroupTiles), {kPlaceTiles}})
    for (const OnUnits& measured : tiles)
      if (const double cost = cycles_of_places(all, measured, options);
          suits_places(measured.tile, options) && cost < least.first)
        least = {cost, measured.tile};
  return least.second;
}

}  // namespace

std::optional<ProductTile> choose_shared_tile(const Graph& graph,
                                              const std::vector<std::uint8_t>& materialized,
                                              const std::vector<NodeIndex>& matmuls,
                                              const std::vector<ProductTile>& tiles,
                                              const FusionOptions& options) {
  std::vector<ProductShape> shapes;
  double apart = 0;
  for (std::size_t i = 0; i < matmuls.size(); ++i) {
    shapes.push_back(product_shape(graph, matmuls[i]));
    if (tiles[i].units != MatrixUnits::none) continue;
    const auto own = std::ranges::find(kTiles, tiles[i], &Measured::tile);
    if (own == kTiles.end()) return std::nullopt;
    apart += cycles(shapes.back(), *own, options) + kLaunchCycles;
  }
  // Products of windows in slices were not measured together.
  for (std::size_t i = 0; i < matmuls.size(); ++i)
    if (tiles[i].slices > 1 && shapes[i].of_windows) return std::nullopt;
  if (graph[matmuls.front()].stays_tiled && tiles.front().units != MatrixUnits::none)
    return shared_tile_of_places(shapes, options);
  if (tiles.front().units != MatrixUnits::none) return shared_tile_of_older_dialect(shapes, tiles, options);
  // Takes the smallest of their tiles that may have all of them: it leaves the shortest tail of workgroups
  // that run alone. Two gradients of a layer of 256: 127 us, with the larger tile 147 us.
  const Measured* smallest = nullptr;
  for (const Measured& measured : kTiles) {  // in order
    const bool suits = measured.tile != kTileOfFew ||
                       std::ranges::all_of(
                           shapes, [&](const ProductShape& shape) { return fits(measured, shape, options); });
    if (suits && std::ranges::find(tiles, measured.tile) != tiles.end()) smallest = &measured;
  }
  const bool one_by_one = std::ranges::any_of(
      matmuls, [&](NodeIndex matmul) { return loads_one_by_one(graph, materialized, matmul); });
  if (!one_by_one && fill_units_often(shapes, kTileOfMany, options)) smallest = &kTileOfMany;
  if (cycles_together(shapes, *smallest, options) + kLaunchCycles >= apart) return std::nullopt;
  const Measured& sliced = *std::ranges::find_if(kTiles, [](const Measured& m) { return m.tile.slices > 1; });
  const bool takes_sliced =
      smallest->tile == kSmallTile && !one_by_one && slices_are_faster(shapes, sliced, *smallest, options);
  return (takes_sliced ? sliced : *smallest).tile;
}

std::int64_t workgroup_count(const Graph& graph, NodeIndex matmul, const ProductTile& tile) {
  const ProductShape shape = product_shape(graph, matmul);
  if (!tile.of_patches) return tile_count(shape, tile);
  const std::int64_t each = tile.columns / 4;
  return row_tiles(shape, tile) * ((windows_of_three(graph, matmul)->patches() + each - 1) / each);
}

bool joins_region(const Graph& graph, const Region& region, const Task& task, std::int64_t shared_bytes) {
  constexpr std::int64_t kMostGroups = 256;
  constexpr std::int64_t kLeastArrays = 16384;  // bytes that several regions of a dispatch may have together
  const bool is_product = task.kind == TaskKind::product && task.tile.units == MatrixUnits::none &&
                          !task.tile.of_patches,
             is_columns = task.kind == TaskKind::column_fold;
  if (!is_product && !is_columns && task.kind != TaskKind::group_fold) return false;
  const std::int64_t invocations = is_product ? task.tile.invocations() : task.invocations,
                     groups = is_product ? tile_count(product_shape(graph, task.anchor), task.tile)
                                         : (task.element_count - 1) / (is_columns ? kFoldColumns : 1) + 1,
                     arrays = std::max(4 * (region.shared_floats + region.shared_ints), kLeastArrays) +
                              (is_product ? product_shared_bytes(task.tile) : 0);
  return region.matrix_groups == 0 && invocations == region.invocations && groups <= kMostGroups &&
         region.blocks * region.groups <= kMostGroups && arrays + kFoldBytes * invocations <= shared_bytes;
}

std::int64_t stretch_length(std::int64_t terms, std::int64_t stretches) {
  const std::int64_t length = terms / stretches;
  return std::max(length / kStretchStep * kStretchStep, std::min(length, kStretchStep));
}

namespace {

double least_cycles(const ProductShape& shape, const FusionOptions& options) {
  double least = std::numeric_limits<double>::infinity();
  for (const Measured& measured : kTiles)
    if (fits(measured, shape, options)) least = std::min(least, cycles(shape, measured, options));
  return least;
}

// Partial sums cost a round trip to memory and a launch.
double cycles_in_stretches(const ProductShape& shape, std::int64_t stretches, const FusionOptions& options,
                           Stretched kind) {
  ProductShape part = shape;
  part.batch *= stretches;
  if (stretches > 1) part.depth = stretch_length(shape.depth, stretches);
  const double products =
      kind == Stretched::places                                    ? least_cycles_of_places(part, options)
      : kind == Stretched::on_matrix_units && options.matrix_tiles ? cycles(part, kOnMatrixUnits, options)
      : kind == Stretched::on_matrix_units ? least_cycles_of_older_dialect(part, options, stretches > 1)
                                           : least_cycles(part, options);
  if (stretches == 1) return products;
  const double partial_bytes =
      2.0 * sizeof(float) * static_cast<double>(part.batch * shape.rows * shape.columns);
  return products + kLaunchCycles +
         partial_bytes / (kBytesPerCycle * static_cast<double>(options.region_groups));
}

}  // namespace

std::int64_t product_stretches(const ProductShape& shape, const FusionOptions& options, Stretched kind) {
  if (shape.depth < (kind == Stretched::places ? kLeastDepth / 4 : kLeastDepth)) return 1;
  std::int64_t best = 1;
  // For a small gain, keep one kernel. Workgroups that have a unit for themselves wait for memory in each of
  // many turns: a product of 384 x 1152 of 8,192 took 451 us on an H200 where 210 were estimated. So do long
  // parts, when the shorter workgroups of their dispatch have ended: of 256 x 256 of 16,384 terms in 8, 16
  // and 32 parts, a step of PPO took 319, 293 and 286 us.
  constexpr double kKeep = 0.9, kWaits = 2, kPlacesWait = 1.1;
  constexpr std::int64_t kManyTerms = 4096, kLongPart = 1024, kPartsPerUnit = 2;
  const std::int64_t tiles = tile_count(shape, kTiles[2].tile);
  const bool is_deep =
      kind == Stretched::tiles && options.product_turn_operations == 0 && shape.depth >= kManyTerms;
  const double keep = is_deep && tiles <= options.region_groups                  ? kWaits
                      : kind == Stretched::places && places_wait(shape, options) ? kPlacesWait
                                                                                 : kKeep;
  double least = keep * cycles_in_stretches(shape, 1, options, kind);
  // Places and narrow products: only stretches that leave no rest, if there can be such.
  const bool is_narrow = kind == Stretched::narrow,
             by_one = (kind == Stretched::places || is_narrow) && shape.depth % kStretchStep == 0;
  const std::int64_t most =
      is_narrow ? kFoldedAtOnce / (shape.batch * shape.rows * shape.columns) : options.fill_groups;
  for (std::int64_t stretches = 2; stretches <= most && shape.depth / stretches >= kLeastStretch;
       stretches = by_one ? stretches + 1 : 2 * stretches) {
    if (by_one && shape.depth / kStretchStep % stretches != 0) continue;
    const bool waits = is_deep && !shape.of_windows && shape.depth / stretches >= kLongPart &&
                       stretches * tiles <= kPartsPerUnit * options.region_groups;
    const double cost = (waits ? kWaits : 1) * cycles_in_stretches(shape, stretches, options, kind);
    if (cost >= least) continue;
    best = stretches;
    least = cost;
  }
  // As many as there are whole ones: the rest, which has a kernel of its own, is then shorter than they are.
  return best == 1 ? 1 : shape.depth / stretch_length(shape.depth, best);
}

namespace {

double cycles_of_tiles(const ProductShape& shape, const FusionOptions& options, bool on_units) {
  if (on_units) return kLaunchCycles + cycles_on_units(shape, kSubgroupTiles.back(), options);
  return kLaunchCycles + cycles_in_stretches(shape, product_stretches(shape, options, Stretched::tiles),
                                             options, Stretched::tiles);
}

// folds: over the rows.
double cycles_in_region(const RegionLayer& layer, bool folds, const FusionOptions& options) {
  constexpr double kRegionEfficiency = 0.3;    // of the device's arithmetic, with operands in shared memory
  constexpr double kWeightBytesPerCycle = 32;  // to one unit, from the cache that all units share
  const double weights = static_cast<double>(layer.in * layer.out),
               units = static_cast<double>(options.region_groups),
               workgroups =
                   std::ceil(static_cast<double>(layer.rows) / static_cast<double>(layer.row_block)) *
                   static_cast<double>(layer.groups);
  const double turns = std::ceil(workgroups / units),
               arithmetic = static_cast<double>(layer.row_block) * weights / (kLanes * kRegionEfficiency);
  if (folds)
    return turns * arithmetic + 2.0 * sizeof(float) * weights * workgroups / (kBytesPerCycle * units);
  return turns * std::max(arithmetic, sizeof(float) * weights / kWeightBytesPerCycle);
}

}  // namespace

bool patches_are_faster(const Graph& graph, NodeIndex matmul, const FusionOptions& options) {
  const double others = cycles_of_tiles(product_shape(graph, matmul), options, false);
  return std::ranges::any_of(kPatchTiles, [&](const OfPatches& measured) {
    const std::optional<double> cost = cycles_of_patches(graph, matmul, measured, options);
    return cost && kLaunchCycles + *cost < others;
  });
}

bool packing_is_faster(const Graph& graph, NodeIndex matmul, const FusionOptions& options) {
  // Cycles of a workgroup, on an H200: eight loads after another fill a vector. Three workgroups on a unit
  // hide their latency from each other.
  constexpr double kStart = 12000, kTurn = 6000, kResident = 3;
  const ProductShape shape = product_shape(graph, matmul);
  if (!shape.of_windows || !options.matrix_units) return true;
  if (patches_are_faster(graph, matmul, options)) return false;
  const ProductTile tile =
      shape.rows <= 64 ? ProductTile{64, 128, 32, 8, 8, MatrixUnits::subgroup} : kMatrixUnitTile;
  const double turns = std::ceil(static_cast<double>(shape.depth) / tile.depth),
               rounds = std::ceil(static_cast<double>(tile_count(shape, tile)) / kResident /
                                  static_cast<double>(options.region_groups));
  return rounds * (kStart + turns * kTurn) < cycles_of_tiles(shape, options, false);
}

bool tiles_are_faster_than_region(const RegionLayer& layer, const FusionOptions& options) {
  const auto& [rows, in, out, groups, row_block, learns, infers] = layer;
  // Time in a region beside its estimate: of 64 rows by 256 (without its regions an encoder of 12 layers
  // takes 553 instead of 587 us on an H200), and of 2,048 rows by 256 (45 us).
  constexpr double kOfRows = 2, kOfManyRows = 3;
  constexpr std::int64_t kRows = 64, kManyRows = 16;  // at least, in all and per unit
  const bool on_units = !learns && options.narrow_products && options.matrix_units,
             has_rows = on_units || (!learns && infers && rows >= kRows),
             has_many_rows = !on_units && !learns && rows >= kManyRows * options.region_groups;
  double region = cycles_in_region(layer, false, options) * (has_many_rows ? kOfManyRows
                                                             : has_rows    ? kOfRows
                                                                           : 1),
         tiles = cycles_of_tiles({groups, rows, out, in}, options, on_units);
  if (learns) {
    region += region + cycles_in_region(layer, true, options);
    tiles += cycles_of_tiles({groups, rows, in, out}, options, false) +
             cycles_of_tiles({groups, in, out, rows}, options, false);
  }
  return region > tiles;
}

}  // namespace imprint::graph

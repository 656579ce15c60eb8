#pragma once
// Chooses the tile of a workgroup for large contractions, from the shape and the measured speed of each tile.
// Pure arithmetic.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/schedule.h"
#include "compute/graph/strides.h"

namespace imprint::graph {

// The tile of a product on matrix units. Each subgroup of 32 computes 8 thread_rows x 4 thread_columns
// outputs: 64 x 32 here.
inline constexpr ProductTile kMatrixUnitTile{128, 128, 32, 8, 8, MatrixUnits::subgroup};

// Shared memory of such a tile, in elements of 16 bytes. Lines run along the terms or across them. Each line
// has one extra element against bank conflicts. Afterwards sums pass through the same memory: of each
// subgroup `scratch_rows` rows of matrices at once.
struct UnitMemory {
  std::int64_t left = 0, right = 0;
  std::int64_t total = 0;
  std::int32_t scratch_rows = 1;
};
UnitMemory unit_memory(const ProductTile& tile);

// Shared memory of a tile of patches (winograd.h), in elements of 16 bytes: values of patches and kernels,
// afterwards of sums.
inline std::int64_t patch_memory(const ProductTile& tile) {
  return std::max(4 * tile.depth * (tile.rows + tile.columns / 4), 2048);
}

// `batch` products of rows x depth by depth x columns.
struct ProductShape {
  std::int64_t batch = 1, rows = 0, columns = 0, depth = 0;
  bool of_windows = false;  // of a convolution: an operand is a view of windows
};
ProductShape product_shape(const Graph& graph, NodeIndex matmul);
// Whether all products of a batch have one left operand, and tiles would not fit their columns: the columns
// of the batch are then those of one product, such as the places of all images of a convolution.
bool joins_columns(const Graph& graph, NodeIndex matmul);

inline std::int64_t row_tiles(const ProductShape& shape, const ProductTile& tile) {
  return (shape.rows + tile.rows - 1) / tile.rows;
}
inline std::int64_t column_tiles(const ProductShape& shape, const ProductTile& tile) {
  return (shape.columns + tile.columns - 1) / tile.columns;
}
// Workgroups.
inline std::int64_t tile_count(const ProductShape& shape, const ProductTile& tile) {
  return shape.batch * row_tiles(shape, tile) * column_tiles(shape, tile);
}
// The same where the tile may be of patches.
std::int64_t workgroup_count(const Graph& graph, NodeIndex matmul, const ProductTile& tile);

// Whether patches are faster than every other tile, and than stretches of terms.
bool patches_are_faster(const Graph& graph, NodeIndex matmul, const FusionOptions& options);

// Whether matrix units are faster for a product whose windows they do not load eight at a time. True for
// products without windows, and where there are no such units.
bool packing_is_faster(const Graph& graph, NodeIndex matmul, const FusionOptions& options);

// Shared memory of a workgroup that computes such a tile.
std::int64_t product_shared_bytes(const ProductTile& tile);

// Whether a product or fold of the region's level is in its dispatch, since one of its own would wait: both
// have few workgroups of as many invocations, and there is room for the arrays of all.
bool joins_region(const Graph& graph, const Region& region, const Task& task, std::int64_t shared_bytes);

// Adds the choice to `made` if there was more than one variant.
ProductTile choose_tile(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul,
                        const FusionOptions& options, std::vector<VariantChoice>& made);

// "64 x 128 x 16 by 8 x 8"
std::string product_tile_text(const ProductTile& tile);

// Whether the product may have any of the tiles that were measured with GL_NV_cooperative_matrix.
bool suits_older_dialect(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul,
                         const FusionOptions& options);

// Returns the tile with which all these products, in one dispatch, finish soonest. Returns nothing if
// separate dispatches with their own tiles finish sooner. matmuls: their nodes, parallel to `tiles`; none on
// matrix units, or all, and each suits the older dialect, or all are places by channels.
std::optional<ProductTile> choose_shared_tile(const Graph& graph,
                                              const std::vector<std::uint8_t>& materialized,
                                              const std::vector<NodeIndex>& matmuls,
                                              const std::vector<ProductTile>& tiles,
                                              const FusionOptions& options);

// How the parts of a split product are computed: in tiles without matrix units, with kMatrixUnitTile, or as
// places by channels (channels_last.h), with the tile on matrix units that suits best. narrow: in tiles that
// are half empty (fills_tiles), in so few parts that one fold adds them up.
enum class Stretched : std::uint8_t { tiles, narrow, on_matrix_units, places };
// Number of equal stretches of the terms to multiply in parallel, for another kernel to sum; 1: no split.
std::int64_t product_stretches(const ProductShape& shape, const FusionOptions& options, Stretched kind);
// Terms per stretch: a multiple of 32, so that vector-aligned operands stay aligned, or less than 32 if a
// stretch cannot have more. Fewer than 32 * stretches terms are left over.
std::int64_t stretch_length(std::int64_t terms, std::int64_t stretches);

// A layer of a row-local region: `groups` products of rows x in by in x out. learns: with both gradients, of
// which that of the weights leaves one partial result per row_block rows.
struct RegionLayer {
  std::int64_t rows = 0, in = 0, out = 0, groups = 1;
  std::int64_t row_block = 1;  // rows of a workgroup
  bool learns = false;
  bool infers = false;  // in a program that does not learn
};
// Whether products in dispatches of their own take less time, by an estimate in cycles of a GPU.
bool tiles_are_faster_than_region(const RegionLayer& layer, const FusionOptions& options);

// Along which of its last two axes a product's operand loads from memory, and how many elements at once: 8
// float16, 4 of any type, or 1.
struct OperandLayout {
  bool along_terms = false;
  std::int32_t width = 1;
};
OperandLayout operand_layout(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                             NodeIndex matmul, std::size_t slot, std::int32_t most_width);

// A product's operand as a workgroup matrix loads it: float16 in memory, in contiguous lines along the terms
// or across them. Nothing for any other layout.
struct MatrixOperand {
  Strides strides;
  bool along_terms = false;
  std::int64_t stride = 1;  // elements between starts of lines
  bool in_eights = false;   // every line starts at a multiple of eight elements
};
std::optional<MatrixOperand> matrix_operand(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                            NodeIndex matmul, std::size_t slot);

// How many operands of a float16 product, which matrix units need, do not load eight at a time, so that
// kernels pack them, such as windows. Nothing for other types.
std::optional<int> packed_operands(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                   NodeIndex matmul);

}  // namespace imprint::graph

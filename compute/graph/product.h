#pragma once
// Large contractions: which tile a workgroup takes, chosen from the shape by what each tile was measured to
// reach. Pure arithmetic.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compute/graph/fusion_options.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"
#include "compute/graph/strides.h"

namespace imprint::graph {

// Of a product on matrix units: subgroups of 32 take 8 thread_rows x 4 thread_columns outputs each, here 64
// x 32.
inline constexpr ProductTile kMatrixUnitTile{128, 128, 32, 8, 8, MatrixUnits::subgroup};

// Of such a tile: what shared memory holds of the left (slot 0) or right operand, in elements of sixteen
// bytes. Lines of terms or the other way round, one element more to each against bank conflicts; the left
// one's serve for sums afterwards.
std::int64_t unit_elements(const ProductTile& tile, std::size_t slot);

// `batch` products of rows x depth by depth x columns.
struct ProductShape {
  std::int64_t batch = 1, rows = 0, columns = 0, depth = 0;
};
ProductShape product_shape(const Graph& graph, NodeIndex matmul);

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

// Adds the choice to `made`, if there was one.
ProductTile choose_tile(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul,
                        const FusionOptions& options, std::vector<VariantChoice>& made);

// "64 x 128 x 16 by 8 x 8"
std::string product_tile_text(const ProductTile& tile);

// The tile with which products that could run in one dispatch are done the soonest, if that is before each is
// with its own, one dispatch after the other. matmuls: their nodes, by `tiles`; none on matrix units.
std::optional<ProductTile> choose_shared_tile(const Graph& graph, const std::vector<NodeIndex>& matmuls,
                                              const std::vector<ProductTile>& tiles,
                                              const FusionOptions& options);

// Equal stretches of the terms that should be multiplied side by side and summed by another kernel; 1: none.
// on_matrix_units: with kMatrixUnitTile.
std::int64_t product_stretches(const ProductShape& shape, const FusionOptions& options, bool on_matrix_units);
// Terms of a stretch, by which operands that lie in vectors still do; as many stretches leave fewer than that
// over.
std::int64_t stretch_length(std::int64_t terms, std::int64_t stretches);

// Along which of its last two axes, and how many at once, a product's operand can be loaded from memory: 8
// float16, 4 of anything, or one by one.
struct OperandLayout {
  bool along_terms = false;
  std::int32_t width = 1;
};
OperandLayout operand_layout(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                             NodeIndex matmul, std::size_t slot, std::int32_t most_width);

// A product's operand as a matrix of a workgroup loads it: float16 in memory, lines of neighbours along the
// terms or the other way round. Nothing where it lies otherwise.
struct MatrixOperand {
  Strides strides;
  bool along_terms = false;
  std::int64_t stride = 1;  // elements from line to line
  bool in_eights = false;   // every line starts at a multiple of eight elements
};
std::optional<MatrixOperand> matrix_operand(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                            NodeIndex matmul, std::size_t slot);

// Whether both operands are float16 in memory, by eight.
bool suits_matrix_units(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul);

}  // namespace imprint::graph

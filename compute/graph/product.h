#pragma once
// Large contractions: which tile a workgroup takes, chosen from the shape by what each tile was measured to reach. Pure arithmetic.

#include <cstdint>

#include "compute/graph/fusion.h"
#include "compute/graph/graph.h"

namespace imprint {

// `batch` products of rows x depth by depth x columns.
struct ProductShape {
  std::int64_t batch = 1, rows = 0, columns = 0, depth = 0;
};
ProductShape product_shape(const Graph& graph, NodeIndex matmul);

inline std::int64_t row_tiles(const ProductShape& shape, const ProductTile& tile) { return (shape.rows + tile.rows - 1) / tile.rows; }
inline std::int64_t column_tiles(const ProductShape& shape, const ProductTile& tile) { return (shape.columns + tile.columns - 1) / tile.columns; }
// Workgroups.
inline std::int64_t tile_count(const ProductShape& shape, const ProductTile& tile) { return shape.batch * row_tiles(shape, tile) * column_tiles(shape, tile); }

// The tile that should take the least time on a device of these options.
ProductTile choose_tile(const ProductShape& shape, const FusionOptions& options);

}  // namespace imprint

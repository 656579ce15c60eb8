#pragma once
// Convolutions of 3 x 3 with stride 1 by fewer multiplications.
//
// Four neighbouring outputs of two rows need a patch of 4 x 4 elements. Patch and kernel are transformed by
// additions to 16 values each, whose products, added up over the channels, are transformed back: 16
// multiply-adds per channel instead of 36. Lavin, Gray, Fast Algorithms for Convolutional Neural Networks,
// 2015: F(2 x 2, 3 x 3). Sums differ from those of a plain product by rounding.

#include <cstdint>
#include <optional>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

// A product of weights with windows, [rows, 9 channels] x [9 channels, places] for each image. Terms run over
// kernel rows, kernel columns and channels.
struct WindowsOfThree {
  NodeIndex windows = -1;  // [batch..., 3, 3, channels, height, width], whose reshape the product reads
  std::int64_t images = 1, channels = 0, height = 0, width = 0;  // of places

  // Patches have 2 x 2 places. Rows have whole pairs of them, whose outputs are four neighbours.
  std::int64_t patches_per_row() const { return (width + 3) / 4 * 2; }
  std::int64_t patches() const { return images * ((height + 1) / 2) * patches_per_row(); }
};

// Nothing for other products, other types, named extents, and channels that are no whole turns of a tile.
std::optional<WindowsOfThree> windows_of_three(const Graph& graph, NodeIndex matmul);
// Whether nothing computes the images where the product reads them.
bool reads_images(const Graph& graph, const std::vector<std::uint8_t>& materialized, NodeIndex matmul);

}  // namespace imprint::graph

#pragma once
// Memory of a value that a start and one stride per axis describe, as seen through views that move no
// element. Pure arithmetic.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

struct Strides {
  NodeIndex memory = -1;   // the node that owns the elements
  std::int64_t start = 0;  // element of memory at position 0, 0, ...
  // Elements of memory between neighbouring positions; 0 along an expanded axis.
  std::array<std::int64_t, Shape::kMaxRank> axis{};
};

// Returns nothing if a node on the way computes, has no elements, or is a view without strides (windows,
// pads, reshapes that join strided axes).
std::optional<Strides> strides_of(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                  NodeIndex index);

}  // namespace imprint::graph

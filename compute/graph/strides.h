#pragma once
// Where the elements of a value lie, as far as that is a start and a stride an axis: memory behind views that
// move no element. Pure arithmetic.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compute/graph/graph.h"

namespace imprint::graph {

struct Strides {
  NodeIndex memory = -1;   // the node whose elements these are
  std::int64_t start = 0;  // element of memory at position 0, 0, ...
  std::array<std::int64_t, Shape::kMaxRank>
      axis{};  // elements of memory from one position to the next; 0 along an expanded axis
};

// Nothing when a view on the way moves elements in another manner (windows, pads, reshapes that join strided
// axes) or computes.
std::optional<Strides> strides_of(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                                  NodeIndex index);

}  // namespace imprint::graph

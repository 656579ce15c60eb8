#pragma once
// Private: how much of a graph this thread makes, so that a reader of files can bound it.

#include <cstdint>

namespace imprint::tensor {

// By this thread so far. A node with a table of elements that the library computes counts as several.
std::uint64_t made_nodes();
// Counts a table as one node for each kElementsPerNode elements.
void count_table(std::int64_t elements);
inline constexpr std::int64_t kElementsPerNode = 128;

// New names of axes (axis_name).
std::uint64_t made_axis_names();
// That one model may make: all models that exist at one time share 65,535.
inline constexpr std::uint64_t kMostAxisNames = 1024;

}  // namespace imprint::tensor

#pragma once
// Non-maximum suppression on the host. Internal.

#include <cstdint>
#include <span>
#include <vector>

namespace imprint::tensor {

// Positions of the boxes that stay. boxes: 4 numbers each, two opposite corners, the best first. A box stays
// if its overlap with each kept one is at most `overlap`. At most `most` boxes stay.
std::vector<std::int64_t> kept_boxes(std::span<const float> boxes, std::int64_t most, float overlap);

}  // namespace imprint::tensor

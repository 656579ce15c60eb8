#pragma once
// Shapes out of files.

#include <cstdint>
#include <span>

#include "compute/base/result.h"
#include "compute/tensor/shape.h"

namespace imprint {

// The most elements of one tensor of a file. Keeps every product of extents far from overflow.
inline constexpr std::int64_t kMaxElements = (std::int64_t{1} << 31) - 1;

// Extents as a Shape. Errors: unsupported (more than Shape::kMaxRank axes, more than kMaxElements),
// invalid_argument (a negative extent).
Result<Shape> checked_shape(std::span<const std::int64_t> extents);

}  // namespace imprint

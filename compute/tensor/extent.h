#pragma once
// Named extents: one program for any batch or length up to a bound (compute/docs/extents.md). shape.h has
// class Extent, and shapes that contain it: input("x", {batch, 32}).

#include "compute/tensor/tensor.h"

namespace imprint {

// The extent that a run has: an int32 scalar.
Tensor actual(const Extent& extent);

}  // namespace imprint

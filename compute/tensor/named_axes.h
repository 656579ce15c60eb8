#pragma once
// Axes with named extents (Extent): which axes of a result have which name, for every primitive. Elements of
// an axis beyond the extent of a run have memory but no meaning, so each operation either keeps them apart
// from the others, or reads them only under a mask (program/extent_masks.h), or refuses.

#include <span>

#include "compute/base/result.h"
#include "compute/tensor/build.h"

namespace imprint::tensor {

// The scalar int32 input that holds the extent of a run.
Tensor extent_input(const std::string& name);
// The extent that the label of such an input names; empty for other inputs.
std::string_view extent_of_input(std::string_view label);

// Whether positions along an axis of this name are among those that a run uses: bool, of their shape.
Tensor used_positions(const Tensor& positions, const AxisName& name);

// 1 / (places of the axes - correction), float32; NaN where that is 0 or less. A constant unless an axis is
// named.
Tensor inverse_count(const Shape& shape, std::span<const int> axes, double correction = 0);

}  // namespace imprint::tensor

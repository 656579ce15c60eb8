#pragma once
// Axes with named extents (Extent): which axes of a result have which name, for every primitive. Elements of
// an axis beyond the extent of a run have memory but no meaning, so each operation either keeps them apart
// from the others, or reads them only under a mask (graph/extent_masks.h), or refuses.

#include <span>

#include "compute/base/result.h"
#include "compute/tensor/build.h"

namespace imprint::tensor {

// Names the axes of a result of shape `out`, whose extents are inferred already. Errors: unsupported (an
// operation that does not take a named axis there), shape_mismatch (two names for one axis).
Result<> name_axes(Op op, std::span<const NodeRef> inputs, const Attributes& attributes, Shape& out);

// Whether any input or the attributes' shape has a named axis.
bool has_named_axes(std::span<const NodeRef> inputs, const Attributes& attributes);

// The scalar int32 input that holds the extent of a run.
Tensor extent_input(const std::string& name);
// The extent that the label of such an input names; empty for other inputs.
std::string_view extent_of_input(std::string_view label);

// Whether positions along an axis of this name are among those that a run uses: bool, of their shape.
Tensor used_positions(const Tensor& positions, AxisName name);

// 1 / (places of the axes - correction), float32; NaN where that is 0 or less. A constant unless an axis is
// named.
Tensor inverse_count(const Shape& shape, std::span<const int> axes, double correction = 0);

}  // namespace imprint::tensor

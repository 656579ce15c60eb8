#pragma once
// Scatters by pages for a device: sorts the indices, then combines the updates of each row in order. Linear
// in the updates, and equal bits however workgroups run.

#include "compute/tensor/pages/library_page.h"

namespace imprint::tensor {

// base, int32 indices and updates of scatter(). ids: if the indices are equal across all other axes, those
// along the axis, [updates]; empty otherwise.
Tensor scatter_on_device(Scatter mode, const Tensor& base, int axis, const Tensor& indices, const Tensor& ids,
                         const Tensor& updates, const PageLimits& limits);

// Whether a scatter_add is worth those kernels; otherwise each output walks the updates along its axis.
bool is_large_scatter(const Shape& base, const Shape& updates, int axis);

}  // namespace imprint::tensor

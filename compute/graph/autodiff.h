#pragma once
// Reverse-mode differentiation. Derivatives are operations like any other, so they fuse, plan and
// differentiate again.

#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// d loss / d each of `with_respect_to`, each with the shape of its tensor.
// loss: a float32 scalar (element count 1). A tensor that loss does not depend on gets zeros.
// Where a function has a kink (relu, abs, max, clamp, ...) the derivative is the one PyTorch uses; max / min
// / argmax ties send the gradient in equal parts to all maxima. stop_gradient, comparisons, rounding, int32
// and bool pass none. Errors: the loss's own error; invalid_argument when loss is not a float32 scalar or a
// target is not float32.
Result<std::vector<Tensor>> gradients(const Tensor& loss, std::span<const Tensor> with_respect_to);

}  // namespace imprint

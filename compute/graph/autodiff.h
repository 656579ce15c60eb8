#pragma once
// Reverse-mode differentiation. Derivatives are ordinary operations: they fuse, plan and differentiate again.

#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// Returns d loss / d each of `with_respect_to`, each with the shape of its tensor. loss: a float32 scalar
// (element count 1). A tensor that the loss does not depend on gets zeros.
// At a kink (relu, abs, max, clamp, ...) the derivative equals PyTorch's. Ties in max / min / argmax share
// the gradient equally. stop_gradient, comparisons, rounding, int32 and bool pass no gradient.
// Errors: the loss's own error; invalid_argument when loss is not a float32 scalar or a target is not
// float32.
Result<std::vector<Tensor>> gradients(const Tensor& loss, std::span<const Tensor> with_respect_to);

}  // namespace imprint

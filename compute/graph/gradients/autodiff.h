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

// The same for outputs of any shape: the gradients of the sum of outputs * cotangents. Cotangents have the
// outputs' shapes. Errors: those of gradients; shape_mismatch.
Result<std::vector<Tensor>> vjp(std::span<const Tensor> outputs, std::span<const Tensor> with_respect_to,
                                std::span<const Tensor> cotangents);

// The change of each output when each of `inputs` changes by its tangent, to first order: the derivative of
// vjp by the cotangents. Errors: those of vjp.
Result<std::vector<Tensor>> jvp(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                std::span<const Tensor> tangents);

}  // namespace imprint

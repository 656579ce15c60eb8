#pragma once
// Derivatives of pages that are also a composition of ordinary operations.

#include <functional>
#include <span>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::nn {

using Composition = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

// The gradients of a composition's inputs, given those of its outputs. The composition alone is
// differentiated: what its inputs are made of does not matter, though one may depend on another.
std::vector<Tensor> composed_gradients(const Composition& composition, std::span<const Tensor> inputs,
                                       std::span<const Tensor> gradients);

}  // namespace imprint::nn

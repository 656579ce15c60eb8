#pragma once
// The derivative of a loop: a loop backwards through the steps that reads each step's carry from a stack.

#include <span>
#include <vector>

#include "compute/tensor/loop.h"

namespace imprint::graph {

// The gradients by the loop's inputs; empty for those that are not needed. of_outputs: the gradients of its
// outputs; empty tensors, or missing ones, are zeros.
Result<std::vector<Tensor>> loop_gradients(const tensor::NodeRef& loop, std::span<const Tensor> of_outputs,
                                           const std::vector<bool>& needed);

}  // namespace imprint::graph

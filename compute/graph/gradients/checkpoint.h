#pragma once
// Recomputation: a training step that keeps fewer values of the forward pass for the backward pass.

#include <span>
#include <vector>

#include "compute/tensor/functions.h"

namespace imprint {

// f(inputs), of which the backward pass keeps only the inputs: it computes f again when the gradients of the
// outputs have arrived. Equal values and gradients, less memory, about a third more time where all of a
// network is in such pieces. f is called once. It may use tensors from outside, such as weights: gradients
// pass to them. It must not contain a loop. Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
std::vector<Tensor> checkpoint(const TensorFunction& f, std::span<const Tensor> inputs);
// The same for one input and one output.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& input);

}  // namespace imprint

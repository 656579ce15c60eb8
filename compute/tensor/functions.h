#pragma once
// Functions of tensors as values: a gradient of the caller's own, and one function for each element of an
// axis. Errors as in tensor.h.

#include <functional>
#include <span>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint {

using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;
// Returns one gradient per input, each with the input's shape; an empty tensor for none. gradients: one per
// output; zeros for one that the loss does not depend on.
using TensorBackward = std::function<std::vector<Tensor>(
    std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::span<const Tensor> gradients)>;

// f(inputs), whose derivative is `backward` instead of f's own. No gradient passes to other tensors that f
// uses: make them inputs. Gradients of gradients differentiate what `backward` records.
std::vector<Tensor> with_gradient(const TensorFunction& f, TensorBackward backward,
                                  std::span<const Tensor> inputs);

// f of each element of the inputs' axis, which all have: outputs have it as their first axis. f sees inputs
// without the axis, and is called once. It may call gradients(): then these are gradients per element.
// Operations run once for all elements; pages (sorts, factorisations), loops and custom rows once per
// element, for at most 1,024 elements. Tensors that f uses besides its inputs are the same for all elements;
// so are random numbers.
// Errors: shape_mismatch (unequal extents, more than 7 axes), bad axis.
std::vector<Tensor> vmap(const TensorFunction& f, std::span<const Tensor> inputs, int axis = 0);

}  // namespace imprint

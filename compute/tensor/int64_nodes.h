#pragma once
// The door of int64_words.cpp to make(): what becomes of a primitive on int64.

#include <optional>
#include <span>

#include "compute/tensor/op.h"

namespace imprint {

class Tensor;

namespace tensor {

struct Attributes;

// The node of a primitive that takes or gives int64, or its error. Nothing where no int64 takes part, and for
// nodes that graphs take apart: leaves, pairs, loops.
std::optional<Tensor> made_of_words(Op op, std::span<const Tensor> inputs, const Attributes& attributes);

}  // namespace tensor
}  // namespace imprint

#pragma once
// Scans by any associative function.

#include <functional>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint {

// Combines values of two stretches of rows, where `before` precedes `after`. Must be associative, and work on
// any number of rows along the axis at once.
using Combination =
    std::function<std::vector<Tensor>(std::span<const Tensor> before, std::span<const Tensor> after)>;

// Row i along the axis: the combination of rows 0 .. i; reverse: of rows from the last to i. All tensors have
// the axis. Takes log2(rows) rounds, each parallel over the rows. Errors: the error of any tensor;
// shape_mismatch (other lengths, a combination of another shape); invalid_argument (no tensors, no such
// axis).
Result<std::vector<Tensor>> associative_scan(const Combination& combine, std::span<const Tensor> x, int axis,
                                             bool reverse = false);

}  // namespace imprint

#pragma once
// Sorting by pages for a device.

#include <vector>

#include "compute/tensor/pages/library_page.h"

namespace imprint::tensor {

struct Sorted {
  Tensor positions;  // int32: where each element came from
  Tensor keys;       // int32: the sorted keys; of stored keys, the elements
};

// Sorts each line of [lines, length], stable. Lines of more than a workgroup's elements take a radix sort of
// eight bits per pass: two kernels each, three for long lines. is_key: elements are int32 keys of at least 0
// and below 2^key_bits already.
Sorted sort_on_device(const Tensor& lines, bool descending, const PageLimits& limits, bool is_key = false,
                      int key_bits = 32);

// Positions of the `count` elements of each line of [lines, length] that come first in that order.
Tensor select_on_device(const Tensor& lines, std::int64_t count, bool largest, const PageLimits& limits);

}  // namespace imprint::tensor

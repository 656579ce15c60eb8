#pragma once
// Arithmetic in float16 and bfloat16: computed as float32, and the result rounded once. Memory alone is
// narrow, so that every device gives equal bits. Internal.

#include "compute/tensor/tensor.h"

namespace imprint::tensor {

// f(x), with x and the result of f as float32, in x's type.
template <class F>
Tensor rounded_once(const Tensor& x, const F& f) {
  return cast(f(cast(x, DType::float32)), x.dtype());
}

inline bool is_narrow_float(const Tensor& x) { return x.ok() && dtype_is_narrow_float(x.dtype()); }

}  // namespace imprint::tensor

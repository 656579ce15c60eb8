#pragma once
// Parts that the operations on images share. Internal.

#include <cstdint>
#include <optional>
#include <string_view>

#include "compute/tensor/composites/images.h"

namespace imprint::tensor {

inline int places_of(const Tensor& x) { return x.rank() - 2; }

// The error of x, or that x is no float32 [batch, channels, places...].
std::optional<Tensor> refuse_image(std::string_view op, const Tensor& x);

struct Sliding {
  PerAxis size = 1, stride = 1, dilation = 1;
  PerAxis before = 0, after = 0;  // padding
};
// [batch, channels, places..., size...]. Places beyond x have the value. `x` has any two axes before its
// places.
Tensor sliding_windows(std::string_view op, const Tensor& x, const Sliding& sliding, double value);

}  // namespace imprint::tensor

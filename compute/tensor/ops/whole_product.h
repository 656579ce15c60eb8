#pragma once
// Products of numbers of 8 bits with constant weights, exact. A device may sum them in int32, of four packed
// numbers at a time; elsewhere they are products in float32.

#include <cstdint>
#include <functional>

#include "compute/base/shared_bytes.h"
#include "compute/tensor/tensor.h"

namespace imprint::tensor {

// Kernels load 16 numbers at a time: zeros follow the terms of a product, or the channels of a window's
// place.
constexpr std::int64_t padded_terms(std::int64_t count) { return (count + 15) / 16 * 16; }

struct WholeProduct {
  // float32 whole numbers: low to low + 255. Of a product [..., terms], of a convolution [images, channels,
  // height, width].
  Tensor numbers;
  Tensor zero;  // their zero point, float32 [] or [..., 1]; empty: none. Of a convolution []
  int low = -128;
  // Weights minus their zero points, int8 [columns, padded_terms(terms)]. Of a convolution [out, window
  // places, padded_terms(channels)].
  SharedBytes weights;
  std::int64_t columns = 1;
  DType sums = DType::int32;  // or float32: rounded once
  // The same sums in float32; of numbers minus their zero point.
  std::function<Tensor(const Tensor& centred)> in_float;
};

// How a kernel slides over images.
struct WholeWindow {
  struct Along {
    std::int64_t size = 1, stride = 1, dilation = 1, before = 0, after = 0;  // padding
    std::int64_t places(std::int64_t extent) const {
      return (extent + before + after - (size - 1) * dilation - 1) / stride + 1;
    }
  };
  Along y, x;
};

// Shapes fit. numbers without named axes -> [..., columns].
Tensor whole_matmul(const WholeProduct& product);
// -> [images, columns, places of y, places of x].
Tensor whole_convolution(const WholeProduct& product, const WholeWindow& window);

}  // namespace imprint::tensor

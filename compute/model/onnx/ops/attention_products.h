#pragma once
// Private: attention that a model spells out in several nodes, and its heads.

#include "compute/tensor/tensor.h"

namespace imprint::onnx {

// matmul(weights, values). Where the weights are softmax(scale query key^T) with a known scale, the product
// is that of nn::attention_page, which kernels on matrix units compute without storing scores.
Tensor product_with_weights(const Tensor& weights, const Tensor& values);

// [batch, steps, heads extent] -> [batch, heads, steps, extent].
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return imprint::permute(imprint::reshape(x, {x.extent(0), x.extent(1), heads, x.extent(2) / heads}),
                          {0, 2, 1, 3});
}

}  // namespace imprint::onnx

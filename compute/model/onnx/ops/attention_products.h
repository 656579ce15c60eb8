#pragma once
// Private: attention that a model spells out in several nodes.

#include "compute/tensor/tensor.h"

namespace imprint::onnx {

// matmul(weights, values). Where the weights are softmax(scale query key^T) with a known scale, the product
// is that of nn::attention_page, which kernels on matrix units compute without storing scores.
Tensor product_with_weights(const Tensor& weights, const Tensor& values);

}  // namespace imprint::onnx

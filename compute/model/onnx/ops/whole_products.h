#pragma once
// Private: products of 8-bit numbers minus their zero points. Devices may sum those with constant weights in
// int32 (compute/tensor/ops/whole_product.h). Others are computed in float32, exactly: in parts whose sums of
// magnitudes stay below 2^24. The CPU's products see that constant weights are whole numbers, and compute
// them so (compute/cpu/whole_numbers.cpp).

#include <optional>

#include "compute/model/onnx/op.h"
#include "compute/tensor/composites/images.h"

namespace imprint::onnx {

// Numbers of at most 8 bits, and their zero point.
struct EightBit {
  Value numbers;
  std::optional<Value> zero;
};
bool is_eight_bit(ElementType type);                                // or fewer
EightBit eight_bit_input(OpContext& context, int input, int zero);  // fails for other types

// Numbers that a product multiplies with weights: float32, whole.
struct Activations {
  Tensor numbers, zero;  // zero: [], or [rows, 1]; empty: none
  int low = 0;           // the least number that the type has; at most 255 more is the largest

  Tensor centred() const;
  bool has_packed_form() const { return !numbers.shape().is_named(); }
};
Activations activations(OpContext& context, const EightBit& x);

// A known value is converted now.
Tensor as_float(OpContext& context, const Value& value);
Tensor as_scalar(const Tensor& value);  // one element as []; others as they are
// One element as []. Others: along an axis of a tensor of this rank.
Tensor along_axis(const Tensor& value, int rank, int axis);

// matmul(a minus its zero point, weights minus theirs), exact. sums: int32, or float32, which adds parts with
// rounding.
Tensor whole_product(OpContext& context, const Activations& a, const EightBit& weights, DType sums);
// The same for the node's convolution, and a kernel [out, in, places...].
Tensor whole_convolution(OpContext& context, const Activations& x, const EightBit& weights, DType sums);

// How the node's convolution slides over x with a kernel [out, in / groups, places...] (ops/image.cpp).
struct ConvolutionForm {
  std::vector<std::pair<std::int64_t, std::int64_t>> pads;  // of all axes
  ConvolutionOptions options;

  Tensor of(const Tensor& x, const Tensor& kernel, const Tensor& bias) const;
};
std::optional<ConvolutionForm> convolution_form(OpContext& context, const Tensor& x, const Tensor& kernel);

// The product of what two DequantizeLinear make, as that of their numbers, times the scales. Nothing where
// it stays in float32: the context then knows why (OpContext::note_quantised).
std::optional<Tensor> dequantized_matmul(OpContext& context, const Value& a, const Value& weights);
std::optional<Tensor> dequantized_convolution(OpContext& context, const Value& x, const Value& weights);

}  // namespace imprint::onnx

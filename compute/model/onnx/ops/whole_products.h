#pragma once
// Private: products of 8-bit numbers minus their zero points. The graph computes them in float32, exactly:
// in parts whose sums of magnitudes stay below 2^24. The CPU's products see that constant weights are whole
// numbers, and compute them so (compute/cpu/whole_numbers.cpp).

#include <optional>

#include "compute/model/onnx/op.h"

namespace imprint::onnx {

// Numbers of at most 8 bits, and their zero point.
struct EightBit {
  Value numbers;
  std::optional<Value> zero;
};
bool is_eight_bit(ElementType type);                                // or fewer
EightBit eight_bit_input(OpContext& context, int input, int zero);  // fails for other types

// A known value is converted now.
Tensor as_float(OpContext& context, const Value& value);
Tensor as_scalar(const Tensor& value);  // one element as []; others as they are
// One element as []. Others: along an axis of a tensor of this rank.
Tensor along_axis(const Tensor& value, int rank, int axis);
// x minus its zero point. rows: a list of zero points is one per row, else one per column.
Tensor centred(OpContext& context, const EightBit& x, bool rows);

// matmul(a, weights minus their zero point), exact. sums: int32, or float32, which adds parts with rounding.
Tensor whole_product(OpContext& context, const Tensor& a, const EightBit& weights, DType sums);
// The same for the node's convolution, and a kernel [out, in, places...].
Tensor whole_convolution(OpContext& context, const Tensor& x, const EightBit& weights, DType sums);

// The product of what two DequantizeLinear make, as that of their numbers, times the scales. Nothing where
// it stays in float32: the context then knows why (OpContext::note_quantised).
std::optional<Tensor> dequantized_matmul(OpContext& context, const Value& a, const Value& weights);
std::optional<Tensor> dequantized_convolution(OpContext& context, const Value& x, const Value& weights);

}  // namespace imprint::onnx

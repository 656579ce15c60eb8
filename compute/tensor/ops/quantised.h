#pragma once
// Weights of 8 or 4 bits with a scale per block, for products whose time is that of reading weights. Errors
// as in tensor.h.

#include <cstdint>

#include "compute/tensor/tensor.h"

namespace imprint {

// A matrix [k, n]. Each column's k weights lie in blocks with one scale: weight = value * scale. The tensors
// may be constants, inputs or variables' values.
struct QuantisedWeights {
  Tensor values;  // 8 bits: int8 [n, k]. 4 bits: uint8 [n, k / 2], the lower four bits first, plus 8
  Tensor scales;  // float32 or float16 [n, k / block]
  int bits = 8;   // 8: -127 .. 127; 4: -7 .. 7
};

// Rounds weight [k, n] to the nearest: the scale is the largest magnitude of the block / 127 or / 7. block
// divides k; with 4 bits it is even.
QuantisedWeights quantise(const Tensor& weight, int bits = 8, std::int64_t block = 32);
Tensor dequantise(const QuantisedWeights& weights);  // float32 [k, n]
// x [..., k] -> [..., n]. On a device, up to 16 rows read the stored bits and take as long as that. Otherwise
// a program unpacks the weights once per run.
Tensor matmul(const Tensor& x, const QuantisedWeights& weights);

}  // namespace imprint

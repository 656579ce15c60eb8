#pragma once
// Weights of an ONNX model as 8-bit or 4-bit numbers. The result is an ONNX file again, which Imprint and
// other runtimes read: its nodes and names stay, except that weights come from DequantizeLinear, and 4-bit
// products are com.microsoft.MatMulNBits. Arithmetic stays in float32: the file is smaller, the runs are not
// faster.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx_proto.h"
#include "compute/tensor/shape.h"

namespace imprint {

struct QuantiseOptions {
  int bits = 8;                        // 8, or 4: of MatMul's weights; weights of other operators then have 8
  std::int64_t block = 32;             // 4 bits: weights that share a scale; a power of two from 16 to 256
  std::int64_t least_elements = 1024;  // smaller weights stay float32
};

struct QuantisedWeight {
  std::string name;
  int bits = 8;
  Shape shape;
  double error = 0;  // root of the mean square of the change, over that of the weights
};

struct QuantisedModel {
  std::vector<std::byte> file;
  std::vector<QuantisedWeight> weights;
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of all initializers
};

// file: a model's bytes; model: the same, as onnx::load or onnx::parse read it, with external tensors. They
// become part of the result. Quantised are float32 initializers of MatMul, Gemm, Conv, ConvTranspose, Gather,
// LSTM, GRU and RNN: each output channel has its scale, which makes the squared error least among eight.
// Errors: invalid_argument (options), corrupt_file (file and model differ).
Result<QuantisedModel> quantise_onnx(std::span<const std::byte> file, const onnx::Model& model,
                                     const QuantiseOptions& options = {});

}  // namespace imprint

#pragma once
// Weights of an ONNX model as 8-bit or 4-bit numbers, and activations as 8-bit ones. The result is an ONNX
// file again, which Imprint and other runtimes read: its nodes and names stay, except that weights come from
// DequantizeLinear, and 4-bit products are com.microsoft.MatMulNBits; activations pass QuantizeLinear and
// DequantizeLinear. Imprint computes in float32: the file is smaller, its runs are not faster. A runtime with
// 8-bit products uses them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/model/onnx/format/proto.h"
#include "compute/tensor/shape.h"

namespace imprint {

struct QuantiseOptions {
  // The least and the largest value of an activation.
  struct Range {
    float low = 0, high = 0;
  };
  int bits = 8;                        // 8, or 4: of MatMul's weights; weights of other operators then have 8
  std::int64_t block = 32;             // 4 bits: weights that share a scale; a power of two from 16 to 256
  std::int64_t least_elements = 1024;  // smaller weights stay float32
  // Of values that quantised_activations() lists: these become 8-bit numbers, clipped to the range.
  std::map<std::string, Range> activations;
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
  std::size_t activations = 0;
};

// The values that are multiplied by weights of 8 bits, in the order of their use. Run the model with them as
// outputs to find their ranges.
std::vector<std::string> quantised_activations(const onnx::Model& model, const QuantiseOptions& options);

// file: a model's bytes; model: the same, as onnx::load or onnx::parse read it, with external tensors. They
// become part of the result. Quantised are float32 initializers of MatMul, Gemm, Conv, ConvTranspose, Gather,
// LSTM, GRU and RNN: each output channel has its scale, which makes the squared error least among eight.
// Bounds for a file of n bytes whose model has tensors of t bytes, external ones too: time O((n + t) log n);
// memory beside them 32 n + 4 t + 64 KiB: names in tables, the new file in three forms, and one weight at a
// time. Errors: invalid_argument (options), unsupported (activations before opset 10), corrupt_file (file and
// model differ; a weight that is infinite or NaN, by name and element).
Result<QuantisedModel> quantise_onnx(std::span<const std::byte> file, const onnx::Model& model,
                                     const QuantiseOptions& options = {});

}  // namespace imprint

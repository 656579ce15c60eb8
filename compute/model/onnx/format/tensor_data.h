#pragma once
// Private: ONNX stores the elements of a tensor in one of several fields. This makes them one list of bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compute/model/files/safetensors.h"
#include "compute/model/onnx/format/proto.h"

namespace imprint::onnx {

struct TypedFields {
  std::vector<float> floats;           // float32
  std::vector<std::int32_t> ints32;    // int32 and everything narrower; float16 and bfloat16 as bit patterns
  std::vector<std::int64_t> ints64;    // int64
  std::vector<double> doubles;         // float64
  std::vector<std::uint64_t> uints64;  // uint32, uint64
  std::optional<SharedBytes> raw;

  std::size_t bytes(ElementType type) const;  // that the typed field of `type` fills; 0 for unknown types
};

// Checks type, extents and counts of `tensor`, and fills its bytes from the field that its type uses. Errors:
// corrupt_file.
Result<> fill_bytes(TensorData& tensor, TypedFields fields);

// An array of a safetensors file.
TensorData tensor_data(std::string name, const safetensors::Array& array);

// load (proto.h) whose most_external_bytes follows from the bytes that external tensors take on the disk, of
// tensors that a node or an output reads. A sparse file takes few.
using ExternalLimit = std::function<std::uint64_t(std::uint64_t stored_bytes)>;
Result<Model> load_with_limit(const std::string& path, const ExternalLimit& most_external_bytes);

}  // namespace imprint::onnx

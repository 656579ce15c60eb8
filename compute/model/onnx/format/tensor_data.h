#pragma once
// Private: ONNX stores the elements of a tensor in one of several fields. This makes them one list of bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
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

// Takes the values of a sparse tensor to their places among zeros. indices: int64 [n], row-major places, or
// [n, rank]. Errors: corrupt_file; unsupported (external tensors, texts, 4-bit numbers, more than
// most_bytes).
Result<> make_dense(TensorData& tensor, const TensorData& indices, std::vector<std::int64_t> extents,
                    std::uint64_t most_bytes);

// One entry of TensorProto.external_data: a key and its value. Errors: corrupt_file.
Result<> set_external(const std::pair<std::string, std::string>& entry, TensorData& tensor);

// An array of a safetensors file.
TensorData tensor_data(std::string name, const safetensors::Array& array);

// load (proto.h) whose most_external_bytes follows from the bytes that external tensors take on the disk, of
// tensors that a node or an output reads. A sparse file takes few.
using ExternalLimit = std::function<std::uint64_t(std::uint64_t stored_bytes)>;
Result<Model> load_with_limit(const std::string& path, const ExternalLimit& most_external_bytes);

}  // namespace imprint::onnx

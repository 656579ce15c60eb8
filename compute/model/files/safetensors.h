#pragma once
// safetensors: named tensors after a JSON header (https://github.com/huggingface/safetensors). Reading is
// strict: a file with a byte that no tensor owns is refused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/base/shared_bytes.h"
#include "compute/tensor/shape.h"

namespace imprint::safetensors {

enum class Type : std::uint8_t {
  boolean,
  uint8,
  int8,
  uint16,
  int16,
  float16,
  bfloat16,
  uint32,
  int32,
  float32,
  uint64,
  int64,
  float64
};

std::string_view type_name(Type type);  // as the format spells it: "BOOL", "F32", ...
std::size_t type_size(Type type);       // bytes of an element

// Elements as they lie in a file: row-major, little-endian, packed.
struct Array {
  Type type = Type::float32;
  Shape shape;
  SharedBytes bytes;  // element count * type_size

  static Array of(std::span<const float> values, const Shape& shape);
  static Array of(std::span<const std::int32_t> values, const Shape& shape);
  static Array of(std::span<const std::int64_t> values, const Shape& shape);
  static Array of_bools(std::span<const std::int32_t> values,
                        const Shape& shape);  // 0 is false, anything else true

  // Converted from any type; 64-bit values round to the nearest float.
  std::vector<float> floats() const;
  // Converted from whole-number types and bool. Errors: dtype_mismatch (a float type), invalid_argument (a
  // value that does not fit 32 or 64 bits).
  Result<std::vector<std::int32_t>> ints() const;
  Result<std::vector<std::int64_t>> long_ints() const;
};

struct File {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;

  // Errors: not_found; the message lists the first names.
  Result<const Array*> find(std::string_view name) const;
};

// Bounds for a file of n bytes whose header has h: h <= 100 MB; time O(n + h log h); memory n + 64 h + 64 KiB
// (compute/base/json.h).
// Errors: corrupt_file (header length or JSON, unknown type, shape against size, overlapping or stray bytes,
// a name twice, a header that needs more memory than that); unsupported (a rank above Shape::kMaxRank).
Result<File> parse(std::span<const std::byte> bytes);
Result<File> load(const std::string& path);
// The same, without reading the tensors: the system reads them from the file when they are used. The file
// must not change while any of them lives.
Result<File> map(const std::string& path);

// Equal contents give equal bytes. Errors: invalid_argument (bytes that do not fit the shape, a name that is
// not UTF-8).
Result<std::vector<std::byte>> serialize(const File& file);
// Atomic (file.h).
Result<> save(const File& file, const std::string& path);

}  // namespace imprint::safetensors

#pragma once
// Element types. float32, int32 and bool are computed with. float16 and bfloat16 are what memory holds: they
// are cast, viewed, gathered, joined and contracted (in float32), and cast to float32 for everything else.
// The others are names that files use.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace imprint {

enum class DType : std::uint8_t { float32, int32, boolean, float16, bfloat16, float64, int64, uint8 };

// The name used in messages and dumps: "float32", "int32", "bool", ...
std::string_view dtype_name(DType dtype);

// Bytes of one element in device memory. A bool takes four (0 or 1), because 8-bit storage is not in the
// baseline.
std::size_t dtype_size(DType dtype);

// Whether tensors of this type can be computed with.
constexpr bool dtype_is_computable(DType dtype) {
  return dtype == DType::float32 || dtype == DType::int32 || dtype == DType::boolean;
}

constexpr bool dtype_is_narrow_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

// Whether elements are floats in registers, whatever memory holds.
constexpr bool dtype_is_float(DType dtype) { return dtype == DType::float32 || dtype_is_narrow_float(dtype); }

// Whether tensors of this type can be made at all.
constexpr bool dtype_has_tensors(DType dtype) {
  return dtype_is_computable(dtype) || dtype_is_narrow_float(dtype);
}

}  // namespace imprint

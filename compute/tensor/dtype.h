#pragma once
// Element types.
//   float32, int32, bool    every operation
//   float16, bfloat16       storage: cast, views, gather, take, concat and matmul (which sums in float32);
//                           cast to float32 for everything else
//   float64, int64, uint8   names of types in files; there are no tensors of them

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace imprint {

enum class DType : std::uint8_t { float32, int32, boolean, float16, bfloat16, float64, int64, uint8 };

// The name in messages and dumps: "float32", "int32", "bool", ...
std::string_view dtype_name(DType dtype);

// Bytes of one element in device memory. A bool takes four and is 0 or 1: the Vulkan baseline has no 8-bit
// storage.
std::size_t dtype_size(DType dtype);

// Whether every operation accepts the type.
constexpr bool dtype_is_computable(DType dtype) {
  return dtype == DType::float32 || dtype == DType::int32 || dtype == DType::boolean;
}

constexpr bool dtype_is_narrow_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

// Whether elements are floats in registers.
constexpr bool dtype_is_float(DType dtype) { return dtype == DType::float32 || dtype_is_narrow_float(dtype); }

// Whether tensors of the type exist.
constexpr bool dtype_has_tensors(DType dtype) {
  return dtype_is_computable(dtype) || dtype_is_narrow_float(dtype);
}

}  // namespace imprint

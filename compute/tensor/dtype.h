#pragma once
// Element types, one row each.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace imprint {

// X(name, text, bytes, registers, use)
//   text       the name in messages and dumps
//   bytes      of one element in memory. Kernels read and write whole words of four bytes, so that a device
//              needs no 8-bit or 16-bit storage, and no 64-bit integers
//   registers  the type of one element while a kernel computes: floats (float), ints (int) or bools.
//              An element of int64 is two ints
//   use        computes: every operation accepts it
//              stores: cast, views, gather, take, concat and pad accept it; integers also as indices, narrow
//                floats also in elementwise operations, reductions and matmul. Else cast to float32 or int32
//              pairs: operations record it as two int32, its low and high words (int64_words.h); graphs and
//                kernels see only those. Operations without a form for pairs refuse it
//              files: a name of types in files; there are no tensors of it
// Integers convert as in C: a narrower type keeps the low bits, and a float is truncated and clamped to int32
// (uint32: to uint32, int64: to int64) first. Conversions to float16 and bfloat16 round to the nearest,
// halves to even.
// clang-format off
#define IMPRINT_DTYPES(X) \
  X(float32,  "float32",  4, floats, computes) \
  X(int32,    "int32",    4, ints,   computes) \
  X(boolean,  "bool",     1, bools,  computes) \
  X(float16,  "float16",  2, floats, stores) \
  X(bfloat16, "bfloat16", 2, floats, stores) \
  X(float64,  "float64",  8, floats, files) \
  X(int64,    "int64",    8, ints,   pairs) \
  X(uint8,    "uint8",    1, ints,   stores) \
  X(int8,     "int8",     1, ints,   stores) \
  X(int16,    "int16",    2, ints,   stores) \
  X(uint16,   "uint16",   2, ints,   stores) \
  X(uint32,   "uint32",   4, ints,   stores)
// clang-format on

enum class DType : std::uint8_t {
#define IMPRINT_DTYPE(name, ...) name,
  IMPRINT_DTYPES(IMPRINT_DTYPE)
#undef IMPRINT_DTYPE
};

namespace tensor {

enum class DTypeRegisters : std::uint8_t { floats, ints, bools };
enum class DTypeUse : std::uint8_t { computes, stores, pairs, files };

struct DTypeInfo {
  std::string_view name;
  std::size_t bytes;
  DTypeRegisters registers;
  DTypeUse use;
};

inline constexpr DTypeInfo kDTypes[] = {
#define IMPRINT_DTYPE(name, text, bytes, registers, use) \
  {text, bytes, DTypeRegisters::registers, DTypeUse::use},
    IMPRINT_DTYPES(IMPRINT_DTYPE)
#undef IMPRINT_DTYPE
};

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace tensor

// The name in messages and dumps: "float32", "int32", "bool", ...
constexpr std::string_view dtype_name(DType dtype) { return tensor::dtype_info(dtype).name; }

// Bytes of one element in memory.
constexpr std::size_t dtype_size(DType dtype) { return tensor::dtype_info(dtype).bytes; }

constexpr tensor::DTypeRegisters dtype_registers(DType dtype) { return tensor::dtype_info(dtype).registers; }

// Whether tensors of the type exist.
constexpr bool dtype_has_tensors(DType dtype) {
  return tensor::dtype_info(dtype).use != tensor::DTypeUse::files;
}

// Whether elements are floats in registers.
constexpr bool dtype_is_float(DType dtype) {
  return dtype_has_tensors(dtype) && dtype_registers(dtype) == tensor::DTypeRegisters::floats;
}

// Whether elements are integers in registers.
constexpr bool dtype_is_integer(DType dtype) {
  return dtype_has_tensors(dtype) && dtype_registers(dtype) == tensor::DTypeRegisters::ints;
}

constexpr bool dtype_is_narrow_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

// The elements as a kernel has them while it computes, four bytes each: a float, an integer, or 0 or 1.
// Packing keeps the low bits of an integer and rounds floats to the nearest. Not for int64.
void unpack_elements(const std::byte* from, std::size_t count, DType dtype, void* words);
void pack_elements(const void* words, std::size_t count, DType dtype, std::byte* to);

// The value of an integer type that has the same low bits.
std::int64_t wrapped_to(std::int64_t value, DType dtype);

}  // namespace imprint

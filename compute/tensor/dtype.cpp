#include "compute/tensor/dtype.h"

#include "compute/base/number_format.h"

namespace imprint {
namespace {

// Calls use(T{}) with the type that an element has in memory.
template <class Use>
void with_stored(DType dtype, Use use) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
      return use(std::uint8_t{});
    case DType::int8:
      return use(std::int8_t{});
    case DType::int16:
      return use(std::int16_t{});
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return use(std::uint16_t{});
    case DType::float64:
    case DType::int64:
      return use(std::int64_t{});
    default:
      return use(std::int32_t{});
  }
}

template <class T>
void put(std::byte* to, std::size_t i, T value) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

void unpack_elements(const std::byte* from, std::size_t count, DType dtype, void* words) {
  auto* to = static_cast<std::byte*>(words);
  if (dtype_is_narrow_float(dtype)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = load_element<std::uint16_t>(from, i);
      put(to, i, dtype == DType::float16 ? float_from_half(bits) : float_from_bfloat16(bits));
    }
    return;
  }
  with_stored(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) put(to, i, static_cast<std::int32_t>(load_element<T>(from, i)));
  });
}

void pack_elements(const void* words, std::size_t count, DType dtype, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(words);
  if (dtype_is_narrow_float(dtype)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = load_element<float>(from, i);
      put(to, i, dtype == DType::float16 ? half_from_float(value) : bfloat16_from_float(value));
    }
    return;
  }
  with_stored(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) put(to, i, static_cast<T>(load_element<std::int32_t>(from, i)));
  });
}

std::int64_t wrapped_to(std::int64_t value, DType dtype) {
  if (dtype == DType::uint32) return static_cast<std::uint32_t>(value);
  std::int64_t result = value;
  with_stored(dtype, [&]<class T>(T) { result = static_cast<T>(value); });
  return result;
}

}  // namespace imprint

#pragma once
// Elements of files: little-endian scalars and the narrow float formats.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace imprint {

static_assert(std::endian::native == std::endian::little, "file elements are copied as they are: a big-endian host needs a byte swap here");

template <class T>
T load_element(const std::byte* bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// IEEE 754 binary16, subnormals, infinities and NaN included.
inline float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 0xFFu : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

// The upper half of a float32.
inline float float_from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace imprint

#pragma once
// Sums and products of amounts that files ask for: they stop at the largest number instead of overflowing.

#include <cstdint>

namespace imprint {

constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
constexpr std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
// Without its fraction. Not for negative numbers.
constexpr std::uint64_t saturated(double value) {
  return value < 0x1p64 ? static_cast<std::uint64_t>(value) : UINT64_MAX;
}

}  // namespace imprint

#pragma once
// A 128-bit content hash for caches (SPIR-V by GLSL text, programs by graph structure, weights by bytes). Not
// cryptographic.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace imprint {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

// Hashes values in the order of their feeds. Equal sequences of feeds give equal digests, whatever the
// machine's padding.
class Hasher {
 public:
  Hasher& bytes(std::span<const std::byte> data);
  Hasher& text(std::string_view text);  // length first, so that "a","bc" differs from "ab","c"
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> Hasher& number(T value) {
    return bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  Hash128 digest() const;

 private:
  std::uint64_t a_ = 0x9E3779B97F4A7C15ull;
  std::uint64_t b_ = 0xC2B2AE3D27D4EB4Full;
  std::uint64_t length_ = 0;
};

struct Hash128Hasher {
  std::size_t operator()(const Hash128& hash) const {
    return static_cast<std::size_t>(hash.low ^ (hash.high * 31));
  }
};

}  // namespace imprint

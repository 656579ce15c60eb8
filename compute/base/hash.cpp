#include "compute/base/hash.h"

#include <bit>
#include <cstring>

namespace imprint {
namespace {

// The 64-bit finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

Hasher& Hasher::bytes(std::span<const std::byte> data) {
  length_ += data.size();
  while (!data.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = data.size() < 8 ? data.size() : 8;
    std::memcpy(&word, data.data(), count);
    // The count separates a short tail from the same bytes followed by zeros.
    a_ = mix(a_ ^ word) + count;
    b_ = std::rotl(b_ ^ a_, 23) * 0x9FB21C651E98DF25ull;
    data = data.subspan(count);
  }
  return *this;
}

Hasher& Hasher::text(std::string_view text) {
  number(static_cast<std::uint64_t>(text.size()));
  return bytes(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

Hash128 Hasher::digest() const { return {mix(a_ ^ length_), mix(b_ + std::rotl(a_, 32))}; }

std::string Hash128::hex() const {
  std::string out;
  for (std::uint64_t word : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(word >> shift) & 15];
  return out;
}

}  // namespace imprint

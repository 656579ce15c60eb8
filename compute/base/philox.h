#pragma once
// Philox4x32-10, the counter-based generator of every random number. It has no state: equal counter and key
// give equal words on every machine. Source: Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as
// 1, 2, 3, SC 2011.

#include <array>
#include <cstdint>

namespace imprint {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += 0x9E3779B9u;  // the golden ratio
    key[1] += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

// The upper 24 bits of a word as a multiple of 2^-24 in [0, 1). float32 holds every such number exactly.
constexpr double uniform_of(std::uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

// Element `index` of random_uniform for a stream and the generator {seed_low, seed_high, step, 0}. Kernels,
// host and tests share this definition.
constexpr double philox_uniform(std::uint32_t index, std::uint32_t stream, std::uint32_t step,
                                std::uint32_t seed_low, std::uint32_t seed_high) {
  return uniform_of(philox({index, stream, step, 0}, {seed_low, seed_high})[0]);
}

// Maps `position` through a random permutation of 0 .. count - 1: element `position` of line `line` of
// random_permutation.
// Swap-or-not: each round pairs the positions by a drawn sum, modulo count, and swaps a pair if a drawn bit
// is set. So it permutes any count and computes each position alone.
// Source: Hoang, Morris, Rogaway, An Enciphering Scheme Based on a Card Shuffle, 2012.
inline constexpr std::uint32_t kPermutationRounds = 24;

constexpr std::uint32_t philox_permuted(std::uint32_t position, std::uint32_t count, std::uint32_t line,
                                        std::uint32_t stream, std::uint32_t step, PhiloxKey seed) {
  for (std::uint32_t round = 1; round <= kPermutationRounds; ++round) {
    const std::uint32_t sum = static_cast<std::uint32_t>(
        (std::uint64_t{philox({line, stream, step, round}, seed)[0]} * count) >> 32);
    const std::uint32_t partner = sum < position ? sum + count - position : sum - position;
    const std::uint32_t pair = position < partner ? partner : position;
    if (philox({line * count + pair, stream, step, round + kPermutationRounds}, seed)[0] >> 31)
      position = partner;
  }
  return position;
}

}  // namespace imprint

#pragma once
// Sums of numbers that lie in several processes' memory.

#include <cstddef>
#include <cstring>
#include <span>

namespace imprint::studio {

// sums[i] = parts[0][i] + parts[1][i] + ..., in this order, for begin <= i < end. Vectors by hand: at -O2
// compilers use none where memory may overlap, and the loop takes three times as long.
inline void add_numbers(std::span<const float* const> parts, float* sums, std::size_t begin,
                        std::size_t end) {
#if defined(__GNUC__)
  typedef float Four __attribute__((vector_size(16)));
  const auto load = [](const float* from) {
    Four value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  constexpr std::size_t kStep = 16;  // a cache line
  for (; begin + kStep <= end; begin += kStep) {
    const float* from = parts[0] + begin;
    Four a = load(from), b = load(from + 4), c = load(from + 8), d = load(from + 12);
    for (std::size_t part = 1; part < parts.size(); ++part) {
      from = parts[part] + begin;
      a += load(from), b += load(from + 4), c += load(from + 8), d += load(from + 12);
    }
    float* to = sums + begin;
    std::memcpy(to, &a, sizeof a), std::memcpy(to + 4, &b, sizeof b);
    std::memcpy(to + 8, &c, sizeof c), std::memcpy(to + 12, &d, sizeof d);
  }
#endif
  for (; begin < end; ++begin) {
    float total = parts[0][begin];
    for (std::size_t part = 1; part < parts.size(); ++part) total += parts[part][begin];
    sums[begin] = total;
  }
}

}  // namespace imprint::studio

#pragma once
// Assigns memory offsets to lifetimes, by pure arithmetic. Greedy by size: places the largest value first, at
// the lowest offset that no overlapping lifetime occupies. Source: Pisarchyk and Lee, Efficient Memory
// Management for Deep Neural Net Inference, 2020.

#include <cstdint>
#include <span>
#include <vector>

namespace imprint::graph {

struct Lifetime {
  std::uint64_t bytes = 0;
  std::int32_t first = 0;  // level that writes it
  std::int32_t last = 0;   // last level that reads it; >= first
};

struct MemoryPlan {
  std::vector<std::uint64_t> offsets;  // per lifetime, multiples of the alignment
  std::uint64_t total_bytes = 0;       // of the arena
  std::uint64_t unplanned_bytes = 0;   // sum of all, without reuse
  std::int64_t steps = 0;              // nodes of the search tree that the plan visited
};

// Where a plan may place values. Both are multiples of the alignment.
struct MemoryRange {
  std::uint64_t begin = 0;                   // the first byte; others lie before it
  std::uint64_t section_bytes = UINT64_MAX;  // no value of at most this size lies across a multiple of it
};

// Two lifetimes overlap if their level ranges share a level. alignment: a power of two. Offsets count from
// 0, totals from range.begin. Takes O(log n) steps per lifetime, plus O(log n) for each gap that it is too
// large for.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment,
                       const MemoryRange& range = {});

// The lowest offset from `begin` on at which `bytes` lie in one section.
inline std::uint64_t within_section(std::uint64_t begin, std::uint64_t bytes, std::uint64_t section_bytes) {
  const std::uint64_t used = begin % section_bytes;
  return used > 0 && bytes > section_bytes - used ? begin + (section_bytes - used) : begin;
}

}  // namespace imprint::graph

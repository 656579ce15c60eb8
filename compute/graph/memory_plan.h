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

// Two lifetimes overlap if their level ranges share a level. alignment: a power of two. Takes
// O(log n) steps per lifetime, plus O(log n) for each gap that it is too large for.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment);

}  // namespace imprint::graph

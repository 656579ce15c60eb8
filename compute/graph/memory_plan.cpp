#include "compute/graph/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace imprint::graph {

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment) {
  const auto aligned = [&](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };

  std::vector<std::size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(
      by_size, [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  struct Placed {
    std::uint64_t begin, end;
    std::size_t index;
  };
  std::vector<Placed> placed;  // sorted by begin
  for (std::size_t index : by_size) {
    const Lifetime& life = lifetimes[index];
    const std::uint64_t bytes = aligned(life.bytes);
    plan.unplanned_bytes += bytes;
    std::uint64_t begin = 0;
    for (const Placed& other : placed) {
      const Lifetime& other_life = lifetimes[other.index];
      if (other_life.last < life.first || life.last < other_life.first) continue;
      if (begin + bytes <= other.begin) break;
      begin = std::max(begin, other.end);
    }
    plan.offsets[index] = begin;
    plan.total_bytes = std::max(plan.total_bytes, begin + bytes);
    const Placed entry{begin, begin + bytes, index};
    placed.insert(std::ranges::upper_bound(placed, entry.begin, {}, &Placed::begin), entry);
  }
  return plan;
}

}  // namespace imprint::graph

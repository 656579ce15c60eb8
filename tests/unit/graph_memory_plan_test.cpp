#include "compute/graph/schedule/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace imprint {

using namespace graph;

namespace {

void expect_disjoint(std::span<const Lifetime> lifetimes, const MemoryPlan& plan, std::uint64_t alignment) {
  for (std::size_t a = 0; a < lifetimes.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % alignment, 0u);
    EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.total_bytes);
    for (std::size_t b = a + 1; b < lifetimes.size(); ++b) {
      if (lifetimes[a].last < lifetimes[b].first || lifetimes[b].last < lifetimes[a].first) continue;
      const bool apart = plan.offsets[a] + lifetimes[a].bytes <= plan.offsets[b] ||
                         plan.offsets[b] + lifetimes[b].bytes <= plan.offsets[a];
      EXPECT_TRUE(apart) << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, ReusesMemoryAfterTheLastUse) {
  const Lifetime chain[] = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  const MemoryPlan plan = plan_memory(chain, 256);
  EXPECT_EQ(plan.total_bytes, 2048u);
  EXPECT_EQ(plan.unplanned_bytes, 4096u);
  expect_disjoint(chain, plan, 256);
}

TEST(MemoryPlan, PutsSmallOnesIntoGaps) {
  const Lifetime lives[] = {{4096, 0, 1}, {2048, 2, 3}, {2048, 2, 3}, {256, 0, 3}};
  const MemoryPlan plan = plan_memory(lives, 256);
  EXPECT_EQ(plan.total_bytes, 4352u);
  expect_disjoint(lives, plan, 256);
}

TEST(MemoryPlan, PutsNoValueAcrossPages) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes(random() % 60);
    for (Lifetime& life : lifetimes) {
      life.bytes = random() % 1024;
      life.first = static_cast<std::int32_t>(random() % 12);
      life.last = life.first + static_cast<std::int32_t>(random() % 5);
    }
    constexpr std::uint64_t kPage = 1024, kBegin = 640;
    MemoryPlan plan = plan_memory(lifetimes, 64, {kBegin, kPage});
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      EXPECT_GE(plan.offsets[i], kBegin);
      if (lifetimes[i].bytes > 0)
        EXPECT_EQ(plan.offsets[i] / kPage, (plan.offsets[i] + lifetimes[i].bytes - 1) / kPage);
      plan.offsets[i] -= kBegin;
    }
    expect_disjoint(lifetimes, plan, 64);
  }
}

TEST(MemoryPlan, NothingNeedsNothing) { EXPECT_EQ(plan_memory({}, 256).total_bytes, 0u); }

TEST(MemoryPlan, NeverOverlapsAndNeverExceedsTheSum) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lifetimes(random() % 40);
    for (Lifetime& life : lifetimes) {
      life.bytes = random() % 5000;
      life.first = static_cast<std::int32_t>(random() % 12);
      life.last = life.first + static_cast<std::int32_t>(random() % 5);
    }
    const MemoryPlan plan = plan_memory(lifetimes, 64);
    expect_disjoint(lifetimes, plan, 64);
    EXPECT_LE(plan.total_bytes, plan.unplanned_bytes);
    // No plan is smaller than the level with the most memory.
    for (std::int32_t level = 0; level < 16; ++level) {
      std::uint64_t live = 0;
      for (const Lifetime& life : lifetimes)
        if (life.first <= level && level <= life.last) live += (life.bytes + 63) / 64 * 64;
      EXPECT_GE(plan.total_bytes, live);
    }
  }
}

// The lowest offset that is free, found by looking at everything that was placed before.
MemoryPlan plan_by_trying(std::span<const Lifetime> lifetimes, std::uint64_t alignment) {
  const auto aligned = [&](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::size_t> order(lifetimes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return lifetimes[i].bytes; });
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Lifetime& life = lifetimes[order[i]];
    const auto fits = [&](std::uint64_t begin) {
      return std::ranges::none_of(
          order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i), [&](std::size_t other) {
            return lifetimes[other].first <= life.last && life.first <= lifetimes[other].last &&
                   plan.offsets[other] < begin + aligned(life.bytes) &&
                   begin < plan.offsets[other] + aligned(lifetimes[other].bytes);
          });
    };
    std::uint64_t begin = 0;
    while (!fits(begin)) begin += alignment;
    plan.offsets[order[i]] = begin;
    plan.total_bytes = std::max(plan.total_bytes, begin + aligned(life.bytes));
  }
  return plan;
}

TEST(MemoryPlan, TakesTheLowestFreeOffset) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes(random() % 60);
    for (Lifetime& life : lifetimes) {
      life.bytes = random() % 9 * 16;
      life.first = static_cast<std::int32_t>(random() % 30);
      life.last = life.first + static_cast<std::int32_t>(random() % 12);
    }
    const MemoryPlan plan = plan_memory(lifetimes, 16), expected = plan_by_trying(lifetimes, 16);
    EXPECT_EQ(plan.offsets, expected.offsets);
    EXPECT_EQ(plan.total_bytes, expected.total_bytes);
  }
}

}  // namespace
}  // namespace imprint

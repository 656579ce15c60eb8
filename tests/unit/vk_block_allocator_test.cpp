#include "compute/vk/memory/block_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace imprint::vk {
namespace {

TEST(BlockAllocator, StartsAsOneFreeRange) {
  BlockAllocator block(1024);
  EXPECT_EQ(block.capacity(), 1024u);
  EXPECT_EQ(block.used(), 0u);
  EXPECT_EQ(block.live(), 0u);
  EXPECT_EQ(block.largest_free(), 1024u);
}

TEST(BlockAllocator, GivesTheWholeBlockOnce) {
  BlockAllocator block(1024);
  EXPECT_EQ(block.allocate(1024, 1), 0u);
  EXPECT_EQ(block.largest_free(), 0u);
  EXPECT_FALSE(block.allocate(1, 1));
  EXPECT_EQ(block.free(0), 1024u);
  EXPECT_EQ(block.allocate(1024, 1), 0u);
}

TEST(BlockAllocator, RefusesImpossibleRequests) {
  BlockAllocator block(1024), none(0);
  EXPECT_FALSE(block.allocate(0, 1));
  EXPECT_FALSE(block.allocate(1025, 1));
  EXPECT_FALSE(block.allocate(~0ull, 1));
  EXPECT_FALSE(none.allocate(1, 1));
  EXPECT_EQ(none.largest_free(), 0u);
  EXPECT_EQ(block.free(0), 0u);
  ASSERT_EQ(block.allocate(16, 1), 0u);
  EXPECT_EQ(block.free(8), 0u) << "inside a range, not its start";
  EXPECT_EQ(block.free(0), 16u);
  EXPECT_EQ(block.free(0), 0u) << "twice";
}

TEST(BlockAllocator, AlignsAndKeepsThePaddingUsable) {
  BlockAllocator block(1024);
  EXPECT_EQ(block.allocate(10, 1), 0u);
  EXPECT_EQ(block.allocate(10, 256), 256u);
  EXPECT_EQ(block.allocate(246, 1), 10u) << "the gap before the aligned range";
  EXPECT_EQ(block.used(), 266u);
}

TEST(BlockAllocator, PassesOverARangeThatOnlyAlignmentMakesTooSmall) {
  BlockAllocator block(1024);
  ASSERT_EQ(block.allocate(8, 1), 0u);
  ASSERT_EQ(block.allocate(64, 1), 8u);
  ASSERT_EQ(block.allocate(952, 1), 72u);
  ASSERT_EQ(block.free(8), 64u);
  EXPECT_FALSE(block.allocate(64, 64)) << "64 bytes are free, at 8";
  EXPECT_EQ(block.allocate(8, 64), 64u);
}

TEST(BlockAllocator, TakesTheSmallestRangeThatFits) {
  BlockAllocator block(1000);
  std::vector<std::uint64_t> offsets;
  for (const std::uint64_t size : {100, 10, 50, 10, 70, 10}) offsets.push_back(*block.allocate(size, 1));
  block.free(offsets[0]);  // 100 at 0
  block.free(offsets[2]);  // 50 at 110
  block.free(offsets[4]);  // 70 at 170
  EXPECT_EQ(block.allocate(60, 1), 170u);
  EXPECT_EQ(block.allocate(50, 1), 110u);
  EXPECT_EQ(block.allocate(60, 1), 0u);
}

TEST(BlockAllocator, JoinsFreeNeighboursOnBothSides) {
  for (const auto& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    BlockAllocator block(96);
    const std::uint64_t offsets[] = {*block.allocate(32, 1), *block.allocate(32, 1), *block.allocate(32, 1)};
    for (const int i : order) block.free(offsets[i]);
    EXPECT_EQ(block.largest_free(), 96u);
    EXPECT_EQ(block.allocate(96, 1), 0u);
  }
}

TEST(BlockAllocator, ReportsTheLargestRangeWhenFragmented) {
  BlockAllocator block(1024);
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(block.allocate(16, 1));
  for (std::uint64_t offset = 0; offset < 1024; offset += 32) ASSERT_EQ(block.free(offset), 16u);
  EXPECT_EQ(block.used(), 512u);
  EXPECT_EQ(block.largest_free(), 16u);
  EXPECT_FALSE(block.allocate(17, 1)) << "half of the block is free, no two ranges touch";
  ASSERT_EQ(block.free(16), 16u);
  EXPECT_EQ(block.largest_free(), 48u);
}

// A map of bytes, slow and simple. It searches free ranges and the best fit again each time.
class Model {
 public:
  explicit Model(std::uint64_t capacity) : bytes_(capacity, false) {}

  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment) {
    std::optional<std::uint64_t> best;
    std::uint64_t best_range = ~0ull;
    for (std::uint64_t begin = 0; begin < bytes_.size();) {
      std::uint64_t end = begin;
      while (end < bytes_.size() && !bytes_[end]) ++end;
      const std::uint64_t aligned = (begin + alignment - 1) / alignment * alignment;
      if (aligned + size <= end && end - begin < best_range) {
        best = aligned;
        best_range = end - begin;
      }
      begin = std::max(end, begin + 1);
    }
    if (best) std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(*best), size, true);
    return best;
  }
  void free(std::uint64_t offset, std::uint64_t size) {
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), size, false);
  }
  std::uint64_t used() const { return static_cast<std::uint64_t>(std::ranges::count(bytes_, true)); }
  std::uint64_t largest_free() const {
    std::uint64_t largest = 0, run = 0;
    for (const bool taken : bytes_) largest = std::max(largest, run = taken ? 0 : run + 1);
    return largest;
  }

 private:
  std::vector<bool> bytes_;
};

class BlockAllocatorRandom : public ::testing::TestWithParam<unsigned> {};

TEST_P(BlockAllocatorRandom, BehavesAsTheModel) {
  std::mt19937 random(GetParam());
  const auto upto = [&](std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n)(random);
  };
  const std::uint64_t capacity = 256 + upto(1024);
  BlockAllocator block(capacity);
  Model model(capacity);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int step = 0; step < 2000; ++step) {
    // Alternates filling and emptying, so that blocks become full and fragmented.
    const bool fill = upto(99) < ((step / 100) % 2 ? 35 : 65);
    if (fill || live.empty()) {
      const std::uint64_t size = 1 + upto(upto(9) ? 40 : capacity), alignment = 1ull << upto(7);
      const auto got = block.allocate(size, alignment);
      ASSERT_EQ(got, model.allocate(size, alignment))
          << "size " << size << " alignment " << alignment << " step " << step;
      if (got) live.emplace(*got, size);
    } else {
      const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(upto(live.size() - 1)));
      ASSERT_EQ(block.free(victim->first), victim->second);
      model.free(victim->first, victim->second);
      live.erase(victim);
    }
    ASSERT_EQ(block.live(), live.size());
    ASSERT_EQ(block.used(), model.used());
    ASSERT_EQ(block.largest_free(), model.largest_free());
  }
  for (const auto& [offset, size] : live) ASSERT_EQ(block.free(offset), size);
  EXPECT_EQ(block.largest_free(), capacity);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BlockAllocatorRandom, ::testing::Range(0u, 20u));

}  // namespace
}  // namespace imprint::vk

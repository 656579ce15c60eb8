#include "compute/vk/memory/memory_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/gpu/vk_fixture.h"

namespace imprint::vk {
namespace {

using test::HostDevice;
using test::Instance;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VkMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    auto instance = Instance::create();
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    instance_ = std::move(instance).value();
    auto host = HostDevice::create(*instance_);
    ASSERT_TRUE(host.ok()) << host.error().message;
    host_ = std::move(host).value();
  }
  void TearDown() override {
    device_.reset();
    host_.reset();
    EXPECT_THAT(instance_->messages(), IsEmpty());
  }
  MemoryPool& pool(std::uint64_t block_bytes, std::uint64_t cap_bytes = 0) {
    DeviceOptions options;
    options.memory = {block_bytes, cap_bytes, {}, block_bytes};
    options.log = {[](void* user, LogLevel, std::string_view message) {
                     static_cast<std::vector<std::string>*>(user)->emplace_back(message);
                   },
                   &log_};
    device_ = std::move(Device::adopt(host_->description(), options)).value();
    return device_->memory();
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<HostDevice> host_;
  std::vector<std::string> log_;
  std::unique_ptr<Device> device_;
};

TEST_F(VkMemory, SuballocatesOneBlock) {
  auto& memory = pool(1 << 20);
  const auto a = memory.allocate(100, 4, MemoryUse::device),
             b = memory.allocate(1000, 4096, MemoryUse::device);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->buffer, b->buffer);
  EXPECT_EQ(a->block, b->block);
  EXPECT_EQ(a->size, 100u);
  EXPECT_EQ(b->offset % 4096, 0u);
  EXPECT_EQ(b->bound_size, 1u << 20);
  EXPECT_EQ(a->mapped, nullptr);
  const MemoryStats stats = memory.stats();
  EXPECT_EQ(stats.bytes_in_use, 1100u);
  EXPECT_EQ(stats.block_count, 1u);
  EXPECT_EQ(stats.allocation_count, 2u);
  EXPECT_EQ(stats.device_allocations, 1u);
  EXPECT_GE(stats.bytes_reserved, 1u << 20);
  EXPECT_GE(stats.largest_free, (1u << 20) - 8192u);
  memory.free(*a);
  memory.free(*b);
  EXPECT_EQ(memory.stats().bytes_in_use, 0u);
  EXPECT_EQ(memory.stats().bytes_peak, 1100u);
  EXPECT_EQ(memory.stats().largest_free, 1u << 20);
}

TEST_F(VkMemory, KeepsUsesInSeparateBlocksAndMapsHostMemory) {
  auto& memory = pool(1 << 16);
  std::set<std::uint32_t> blocks;
  for (const MemoryUse use : {MemoryUse::device, MemoryUse::upload, MemoryUse::readback}) {
    const auto allocation = memory.allocate(512, 16, use);
    ASSERT_TRUE(allocation.ok());
    blocks.insert(allocation->block);
    if (use == MemoryUse::device) {
      EXPECT_EQ(allocation->mapped, nullptr);
      continue;
    }
    ASSERT_NE(allocation->mapped, nullptr);
    std::memset(allocation->mapped, 0x5a, 512);
    const auto second = memory.allocate(64, 16, use);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(static_cast<std::byte*>(second->mapped) - static_cast<std::byte*>(allocation->mapped),
              static_cast<std::ptrdiff_t>(second->offset - allocation->offset));
    memory.free(*second);
    memory.free(*allocation);
  }
  EXPECT_EQ(blocks.size(), 3u);
}

TEST_F(VkMemory, RespectsTheOffsetAlignmentsOfTheDevice) {
  auto& memory = pool(1 << 16);
  const Capabilities& capabilities = device_->capabilities();
  for (int i = 0; i < 10; ++i) {
    const auto allocation = memory.allocate(1, 1, MemoryUse::device);
    ASSERT_TRUE(allocation.ok());
    EXPECT_EQ(allocation->offset % capabilities.min_storage_buffer_offset_alignment, 0u);
    EXPECT_EQ(allocation->offset % capabilities.min_uniform_buffer_offset_alignment, 0u);
  }
}

TEST_F(VkMemory, GivesALargeRequestItsOwnBlock) {
  auto& memory = pool(1 << 16);
  const auto large = memory.allocate(1 << 20, 256, MemoryUse::device);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->bound_size, 1u << 20);
  const auto small = memory.allocate(16, 16, MemoryUse::device);
  ASSERT_TRUE(small.ok());
  EXPECT_NE(small->block, large->block);
}

TEST_F(VkMemory, RefusesSizesBeyondADescriptor) {
  auto& memory = pool(1 << 16);
  const auto allocation =
      memory.allocate(device_->capabilities().max_storage_buffer_range + 1, 16, MemoryUse::device);
  ASSERT_FALSE(allocation.ok());
  EXPECT_EQ(allocation.error().code, ErrorCode::unsupported);
  EXPECT_THAT(allocation.error().message, HasSubstr("maxStorageBufferRange"));
  EXPECT_EQ(memory.allocate(~0ull, 16, MemoryUse::device).error().code, ErrorCode::unsupported);
}

TEST_F(VkMemory, ClampsBlocksToTheRangeOfADescriptor) {
  auto& memory = pool(1ull << 50);
  const auto allocation = memory.allocate(16, 16, MemoryUse::device);
  if (allocation.ok()) {
    EXPECT_LE(allocation->bound_size, device_->capabilities().max_storage_buffer_range);
  }
}

TEST_F(VkMemory, RefusesBadArguments) {
  auto& memory = pool(1 << 16);
  EXPECT_EQ(memory.allocate(0, 16, MemoryUse::device).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(memory.allocate(16, 0, MemoryUse::device).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(memory.allocate(16, 24, MemoryUse::device).error().code, ErrorCode::invalid_argument);
}

TEST_F(VkMemory, HoldsTheCap) {
  constexpr std::uint64_t kBlock = 1 << 16;
  auto& memory = pool(kBlock, 3 * kBlock + kBlock / 2);
  std::vector<Allocation> held;
  for (int i = 0; i < 3; ++i) held.push_back(*memory.allocate(kBlock, 16, MemoryUse::device));
  const auto half = memory.allocate(kBlock / 4, 16, MemoryUse::device);
  ASSERT_TRUE(half.ok()) << "room for one block of this size, but not for a full one: "
                         << half.error().message;
  const auto beyond = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(beyond.error().message, HasSubstr("the cap has no room"));
  EXPECT_THAT(beyond.error().message,
              HasSubstr(std::to_string(3 * kBlock + kBlock / 4) + " bytes are in use"));
  EXPECT_THAT(beyond.error().message,
              HasSubstr("the cap is " + std::to_string(3 * kBlock + kBlock / 2) + " bytes"));
  EXPECT_LE(memory.stats().bytes_reserved, 3 * kBlock + kBlock / 2);

  memory.free(held.back());
  EXPECT_TRUE(memory.allocate(kBlock, 16, MemoryUse::device).ok()) << "freed memory is available again";
}

// A first block of 32 MiB would take all of it.
TEST_F(VkMemory, LeavesRoomForEveryUseUnderASmallCap) {
  for (const std::uint64_t cap : {8ull << 20, 32ull << 20, 64ull << 20}) {
    auto& memory = pool(32 << 20, cap);
    std::vector<Allocation> held;
    for (const MemoryUse use : {MemoryUse::device, MemoryUse::upload, MemoryUse::readback})
      for (const bool yields : {false, true}) {
        const auto allocation = memory.allocate(64 << 10, 256, use, yields);
        ASSERT_TRUE(allocation.ok()) << "cap " << cap << ": " << allocation.error().message;
        held.push_back(*allocation);
      }
    EXPECT_LE(memory.stats().bytes_reserved, cap / 2);
    for (const Allocation& allocation : held) memory.free(allocation);
  }
}

TEST_F(VkMemory, GivesBackEmptyBlocksOfOtherUsesWhenTheCapIsReached) {
  constexpr std::uint64_t kBlock = 1 << 16;
  auto& memory = pool(kBlock, kBlock);
  memory.free(*memory.allocate(16, 16, MemoryUse::upload));
  EXPECT_EQ(memory.stats().block_count, 1u);
  const auto allocation = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_TRUE(allocation.ok()) << allocation.error().message;
  EXPECT_EQ(memory.stats().block_count, 1u);
  EXPECT_EQ(memory.stats().device_allocations, 2u);
}

TEST_F(VkMemory, TrimsOnlyEmptyBlocks) {
  constexpr std::uint64_t kBlock = 1 << 16;
  auto& memory = pool(kBlock);
  std::vector<Allocation> held;
  for (int i = 0; i < 4; ++i) held.push_back(*memory.allocate(kBlock, 16, MemoryUse::device));
  EXPECT_EQ(memory.trim(), 0u);
  memory.free(held[1]);
  memory.free(held[3]);
  const std::uint64_t reserved = memory.stats().bytes_reserved;
  const std::uint64_t given_back = memory.trim();
  EXPECT_GE(given_back, 2 * kBlock);
  EXPECT_EQ(memory.stats().bytes_reserved, reserved - given_back);
  EXPECT_EQ(memory.stats().block_count, 2u);
  EXPECT_EQ(memory.trim(), 0u);

  const auto again = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->block, held[1].block) << "the name of a trimmed block is used again";
  EXPECT_NE(again->block, held[2].block);
}

TEST_F(VkMemory, IgnoresASecondFreeAndSaysSo) {
  auto& memory = pool(1 << 16);
  const auto allocation = memory.allocate(16, 16, MemoryUse::device);
  memory.free(*allocation);
  memory.free(*allocation);
  memory.free(Allocation{});
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("already freed"));
  EXPECT_EQ(memory.stats().allocation_count, 0u);
}

TEST_F(VkMemory, NamesLeakedAllocations) {
  ASSERT_TRUE(pool(1 << 16).allocate(300, 16, MemoryUse::device).ok());
  device_.reset();
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("found 1 live allocations (300 bytes)"));
}

TEST_F(VkMemory, CountsAllocationsAndThoseOfAFrame) {
  auto& memory = pool(1 << 16);
  Counters& counters = device_->counters();
  ASSERT_TRUE(memory.allocate(16, 16, MemoryUse::device).ok());
  EXPECT_EQ(counters.allocations, 1u);
  EXPECT_EQ(counters.frame_allocations, 0u);
  counters.enter_frame();
  ASSERT_TRUE(memory.allocate(16, 16, MemoryUse::device).ok());
  EXPECT_EQ(counters.frame_allocations, 0u) << "from an existing block";
  ASSERT_TRUE(memory.allocate(16, 16, MemoryUse::upload).ok());
  EXPECT_EQ(counters.frame_allocations, 1u);
  EXPECT_EQ(counters.allocations, 2u);
}

TEST_F(VkMemory, ServesManyThreads) {
  auto& memory = pool(1 << 16, 64 << 16);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::mt19937 random(t);
      std::vector<Allocation> held;
      for (int i = 0; i < 400; ++i) {
        if (held.size() < 40 && random() % 3) {
          auto allocation = memory.allocate(1 + random() % 9000, 16, MemoryUse::upload);
          ASSERT_TRUE(allocation.ok()) << allocation.error().message;
          std::memset(allocation->mapped, static_cast<int>(t), allocation->size);
          held.push_back(*allocation);
        } else if (!held.empty()) {
          const auto* bytes = static_cast<const unsigned char*>(held.back().mapped);
          for (std::uint64_t b = 0; b < held.back().size; ++b) ASSERT_EQ(bytes[b], t);
          memory.free(held.back());
          held.pop_back();
        }
        if (random() % 50 == 0) memory.trim();
      }
      for (const auto& allocation : held) memory.free(allocation);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(memory.stats().bytes_in_use, 0u);
  EXPECT_EQ(memory.stats().allocation_count, 0u);
  memory.trim();
  EXPECT_EQ(memory.stats().bytes_reserved, 0u);
}

}  // namespace
}  // namespace imprint::vk

// The pool's calls to a driver, against fake drivers with heaps that this machine lacks.

#include "compute/vk/memory/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compute/vk/device.h"

namespace imprint::vk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

constexpr std::uint64_t kBlock = 65536;  // every block of these tests

// The objects that the fake VkDevice and VkPhysicalDevice handles point to.
struct FakeMemoryDriver {
  VkPhysicalDeviceMemoryProperties properties{};
  std::map<std::uint32_t, VkResult> failing_types;
  VkResult map_result = VK_SUCCESS;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  std::uint64_t size_overhead = 0;  // of a memory requirement above the buffer's size

  std::vector<std::uint32_t> tried_types;
  std::set<std::uint64_t> buffers, memories;
  std::uint64_t next = 0x1000;
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 20);

  void heap_of(std::uint64_t size) { properties.memoryHeaps[properties.memoryHeapCount++].size = size; }
  void type_of(std::uint32_t heap, VkMemoryPropertyFlags flags) {
    properties.memoryTypes[properties.memoryTypeCount++] = {flags, heap};
  }

  template <class H>
  static FakeMemoryDriver& of(H handle) {
    return *reinterpret_cast<FakeMemoryDriver*>(handle);
  }
};

Functions pool_functions() {
  Functions f;
  f.vkGetPhysicalDeviceMemoryProperties = [](VkPhysicalDevice device,
                                             VkPhysicalDeviceMemoryProperties* properties) {
    *properties = FakeMemoryDriver::of(device).properties;
  };
  f.vkGetPhysicalDeviceMemoryProperties2 = [](VkPhysicalDevice device,
                                              VkPhysicalDeviceMemoryProperties2* properties) {
    auto* budget = static_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(properties->pNext);
    for (int i = 0; i < 4; ++i) {
      budget->heapBudget[i] = FakeMemoryDriver::of(device).budget.heapBudget[i];
      budget->heapUsage[i] = FakeMemoryDriver::of(device).budget.heapUsage[i];
    }
  };
  f.vkCreateBuffer = [](VkDevice device, const VkBufferCreateInfo*, const VkAllocationCallbacks*,
                        VkBuffer* buffer) {
    auto& driver = FakeMemoryDriver::of(device);
    driver.buffers.insert(++driver.next);
    *buffer = reinterpret_cast<VkBuffer>(driver.next);
    return VK_SUCCESS;
  };
  f.vkDestroyBuffer = [](VkDevice device, VkBuffer buffer, const VkAllocationCallbacks*) {
    EXPECT_EQ(FakeMemoryDriver::of(device).buffers.erase(reinterpret_cast<std::uint64_t>(buffer)), 1u);
  };
  f.vkGetBufferMemoryRequirements = [](VkDevice device, VkBuffer, VkMemoryRequirements* requirements) {
    requirements->size = kBlock + FakeMemoryDriver::of(device).size_overhead;
    requirements->alignment = 16;
    requirements->memoryTypeBits = ~0u;
  };
  f.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                          VkDeviceMemory* memory) {
    auto& driver = FakeMemoryDriver::of(device);
    driver.tried_types.push_back(info->memoryTypeIndex);
    if (const auto failing = driver.failing_types.find(info->memoryTypeIndex);
        failing != driver.failing_types.end())
      return failing->second;
    driver.memories.insert(++driver.next);
    *memory = reinterpret_cast<VkDeviceMemory>(driver.next);
    return VK_SUCCESS;
  };
  f.vkFreeMemory = [](VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks*) {
    EXPECT_EQ(FakeMemoryDriver::of(device).memories.erase(reinterpret_cast<std::uint64_t>(memory)), 1u);
  };
  f.vkBindBufferMemory = [](VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize) { return VK_SUCCESS; };
  f.vkMapMemory = [](VkDevice device, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags,
                     void** data) {
    *data = FakeMemoryDriver::of(device).bytes.data();
    return FakeMemoryDriver::of(device).map_result;
  };
  return f;
}

// The part of a device that the pool needs.
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeMemoryDriver& driver) : driver_(driver) {
    capabilities_.max_storage_buffer_range = 1 << 27;
    capabilities_.min_storage_buffer_offset_alignment = 16;
    capabilities_.min_uniform_buffer_offset_alignment = 64;
  }
  Capabilities& edit() { return capabilities_; }

  const Functions& functions() const override { return functions_; }
  VkDevice handle() const override { return reinterpret_cast<VkDevice>(&driver_); }
  VkPhysicalDevice physical_device() const override { return reinterpret_cast<VkPhysicalDevice>(&driver_); }
  const VkAllocationCallbacks* allocation_callbacks() const override { return nullptr; }
  std::uint32_t queue_family() const override { return 0; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const std::vector<MissingFeature>& missing_features() const override { return missing_features_; }
  const DeviceOptions& options() const override { return options_; }
  MemoryPool& memory() override { return *pool_; }
  PipelineStore& pipelines() override { return *pipelines_; }
  Counters& counters() override { return counters_; }
  Completion& completion() override { return completion_; }
  Ticket last_ticket() const override { return completion_.last(); }
  bool is_complete(Ticket) override { return true; }
  void retire(Ticket, std::function<void()> destroy) override { destroy(); }
  void collect() override {}
  void mark_lost() override { lost_ = true; }
  bool lost() const override { return lost_; }

 private:
  FakeMemoryDriver& driver_;
  Functions functions_ = pool_functions();
  Capabilities capabilities_;
  std::vector<MissingFeature> missing_features_;
  DeviceOptions options_;
  Counters counters_;
  Completion completion_;
  bool lost_ = false;
  std::unique_ptr<MemoryPool> pool_;
  std::unique_ptr<PipelineStore> pipelines_;
};

class MemoryPoolTest : public ::testing::Test {
 protected:
  void TearDown() override {
    pool_.reset();
    EXPECT_THAT(driver_.buffers, IsEmpty());
    EXPECT_THAT(driver_.memories, IsEmpty());
  }
  // A discrete card: plain and mappable device memory, write-combined and cached host memory.
  void discrete() {
    driver_.heap_of(8ull << 30);
    driver_.heap_of(16ull << 30);
    driver_.type_of(0, kLocal);                                     // 0
    driver_.type_of(1, kMapped);                                    // 1
    driver_.type_of(0, kLocal | kMapped);                           // 2
    driver_.type_of(1, kMapped | kCached);                          // 3
    driver_.type_of(0, kLocal | VK_MEMORY_PROPERTY_PROTECTED_BIT);  // 4
  }
  MemoryPool& pool(std::uint64_t cap = 0) {
    pool_ = create_block_pool(device_, {kBlock, cap});
    return *pool_;
  }
  // The memory type of the first allocation with this use.
  std::optional<std::uint32_t> type_for(MemoryUse use) {
    auto& memory = pool();
    const auto allocation = memory.allocate(16, 16, use);
    if (!allocation.ok()) return std::nullopt;
    memory.free(*allocation);
    return driver_.tried_types.back();
  }

  FakeMemoryDriver driver_;
  FakeDevice device_{driver_};
  std::unique_ptr<MemoryPool> pool_;
};

TEST_F(MemoryPoolTest, PutsEachUseWhereItBelongsOnACard) {
  discrete();
  EXPECT_EQ(type_for(MemoryUse::device), 0u);
  EXPECT_EQ(type_for(MemoryUse::upload), 1u) << "not the small mappable part of the card";
  EXPECT_EQ(type_for(MemoryUse::readback), 3u);
}

TEST_F(MemoryPoolTest, TakesTheOneTypeOfAnIntegratedDeviceForAll) {
  driver_.heap_of(2ull << 30);
  driver_.type_of(0, kLocal | kMapped | kCached);
  for (const MemoryUse use : {MemoryUse::device, MemoryUse::upload, MemoryUse::readback})
    EXPECT_EQ(type_for(use), 0u);
}

TEST_F(MemoryPoolTest, ReadsBackThroughUncachedMemoryWhereThereIsNoOther) {
  driver_.heap_of(1 << 30);
  driver_.type_of(0, kLocal);
  driver_.type_of(0, kMapped);
  EXPECT_EQ(type_for(MemoryUse::readback), 1u);
}

TEST_F(MemoryPoolTest, NeverTakesCachedMemoryThatIsNotCoherent) {
  driver_.heap_of(1 << 30);
  driver_.type_of(0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | kCached);
  driver_.type_of(0, kMapped);
  EXPECT_EQ(type_for(MemoryUse::readback), 1u);
}

TEST_F(MemoryPoolTest, NeverPutsDeviceBlocksIntoHostMemorySilently) {
  discrete();
  driver_.failing_types = {{0, VK_ERROR_OUT_OF_DEVICE_MEMORY}, {2, VK_ERROR_OUT_OF_DEVICE_MEMORY}};
  const auto allocation = pool().allocate(16, 16, MemoryUse::device);
  ASSERT_FALSE(allocation.ok());
  EXPECT_EQ(allocation.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(allocation.error().message, HasSubstr("the device has no room"));
  EXPECT_THAT(std::set(driver_.tried_types.begin(), driver_.tried_types.end()), ElementsAre(0, 2));
  EXPECT_EQ(pool_->stats().bytes_reserved, 0u) << "given back";
}

TEST_F(MemoryPoolTest, UsesHostMemoryForTheDeviceWhereThereIsNothingElse) {
  driver_.heap_of(1 << 30);
  driver_.type_of(0, kMapped);
  EXPECT_EQ(type_for(MemoryUse::device), 0u);
}

TEST_F(MemoryPoolTest, GoesOnToTheNextTypeWhenOneIsFull) {
  discrete();
  driver_.failing_types = {{1, VK_ERROR_OUT_OF_DEVICE_MEMORY}};
  EXPECT_EQ(type_for(MemoryUse::upload), 3u);
}

TEST_F(MemoryPoolTest, LeavesNoMemoryWhenMappingFails) {
  discrete();
  driver_.map_result = VK_ERROR_MEMORY_MAP_FAILED;
  const auto allocation = pool().allocate(16, 16, MemoryUse::upload);
  ASSERT_FALSE(allocation.ok());
  EXPECT_EQ(allocation.error().message, "vkMapMemory: VK_ERROR_MEMORY_MAP_FAILED");
  EXPECT_THAT(driver_.buffers, IsEmpty());
  EXPECT_THAT(driver_.memories, IsEmpty());
  EXPECT_EQ(pool_->stats().bytes_reserved, 0u);
  driver_.map_result = VK_SUCCESS;
  const auto again = pool_->allocate(16, 16, MemoryUse::upload);
  ASSERT_TRUE(again.ok());
  pool_->free(*again);
}

TEST_F(MemoryPoolTest, MarksTheDeviceLostWhenTheDriverSaysSo) {
  discrete();
  driver_.failing_types = {{0, VK_ERROR_DEVICE_LOST}};
  EXPECT_EQ(pool().allocate(16, 16, MemoryUse::device).error().code, ErrorCode::device_lost);
  EXPECT_TRUE(device_.lost());
  EXPECT_THAT(driver_.tried_types, ElementsAre(0));
  EXPECT_EQ(pool_->allocate(16, 16, MemoryUse::device).error().code, ErrorCode::device_lost);
  EXPECT_THAT(driver_.tried_types, ElementsAre(0)) << "no further call";
}

TEST_F(MemoryPoolTest, RefusesMemoryThatTheHostSaysItGaveAndDidNot) {
  discrete();
  MemoryPoolOptions options{kBlock, 0};
  options.calls.allocate = [](void*, const VkMemoryAllocateInfo&, VkDeviceMemory*) { return VK_SUCCESS; };
  options.calls.free = [](void*, VkDeviceMemory) { ADD_FAILURE() << "freed an unknown allocation"; };
  pool_ = create_block_pool(device_, options);
  const auto refused = pool_->allocate(16, 16, MemoryUse::device);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("allocate_device_memory: found VK_SUCCESS without memory"));
}

TEST_F(MemoryPoolTest, KeepsToTheDriversBudgetOnlyWhenItIsDeclared) {
  discrete();
  driver_.budget.heapBudget[0] = 1 << 20;
  driver_.budget.heapUsage[0] = (1 << 20) - kBlock + 1;
  EXPECT_EQ(type_for(MemoryUse::device), 0u) << "not declared";
  device_.edit().memory_budget = true;
  const auto refused = pool().allocate(16, 16, MemoryUse::device);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("memory budget has no room"));
  driver_.budget.heapUsage[0] = (1 << 20) - kBlock;
  EXPECT_EQ(type_for(MemoryUse::device), 0u);
  EXPECT_EQ(type_for(MemoryUse::upload), 1u) << "a heap without a budget";
}

TEST_F(MemoryPoolTest, CountsTheDriversSizeNotTheBuffers) {
  discrete();
  driver_.size_overhead = 4096;
  EXPECT_FALSE(pool(kBlock).allocate(16, 16, MemoryUse::device).ok()) << "the driver takes more than the cap";
  EXPECT_THAT(driver_.tried_types, IsEmpty());
  auto& memory = pool(kBlock + 4096);
  const auto allocation = memory.allocate(16, 16, MemoryUse::device);
  ASSERT_TRUE(allocation.ok());
  EXPECT_EQ(memory.stats().bytes_reserved, kBlock + 4096);
  memory.free(*allocation);
  EXPECT_EQ(memory.trim(), kBlock + 4096);
}

TEST_F(MemoryPoolTest, CountsItsAllocationsAgainstTheDevicesLimit) {
  discrete();
  device_.edit().max_memory_allocation_count = 2;
  auto& memory = pool();
  const auto first = memory.allocate(kBlock, 16, MemoryUse::device),
             second = memory.allocate(16, 16, MemoryUse::upload);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::size_t tries = driver_.tried_types.size();
  const auto third = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(third.error().message, HasSubstr("maxMemoryAllocationCount"));
  EXPECT_THAT(third.error().message, HasSubstr("allocations: 2 of 2"));
  EXPECT_EQ(driver_.tried_types.size(), tries) << "Vulkan is not asked";
  memory.free(*second);
  const auto again = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_TRUE(again.ok()) << "an empty block was given back for it: " << again.error().message;
  memory.free(*first);
  memory.free(*again);
}

TEST_F(MemoryPoolTest, NamesTheOwnerOfTooManyAllocations) {
  discrete();
  driver_.failing_types = {{0, VK_ERROR_TOO_MANY_OBJECTS}, {2, VK_ERROR_TOO_MANY_OBJECTS}};
  const auto refused = pool().allocate(16, 16, MemoryUse::device);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_device_memory);
  EXPECT_THAT(refused.error().message, HasSubstr("Imprint and the host"));
}

TEST_F(MemoryPoolTest, KeepsYieldingMemoryInSeparateSmallBlocks) {
  discrete();
  auto& memory = pool();
  const auto stays = memory.allocate(64, 16, MemoryUse::device),
             goes = memory.allocate(64, 16, MemoryUse::device, true),
             large = memory.allocate(3 * kBlock, 16, MemoryUse::device, true);
  ASSERT_TRUE(stays.ok() && goes.ok() && large.ok());
  EXPECT_EQ(driver_.tried_types.back(), 0u) << "device memory";
  EXPECT_EQ(memory.stats().block_count, 3u);
  EXPECT_LT(goes->bound_size, kBlock);
  memory.free(*goes);
  memory.free(*large);
  EXPECT_GT(memory.trim(), 0u);
  EXPECT_EQ(memory.stats().block_count, 1u) << "only memory that stays";
  memory.free(*stays);
}

// Small hosts reserve little, large ones make few allocations.
TEST_F(MemoryPoolTest, BlocksGrowWithWhatIsAsked) {
  discrete();
  constexpr std::uint64_t kLongest = 16 * kBlock;
  const auto lengths = [&](std::size_t count) {
    pool_ = create_block_pool(device_, {kLongest, 0, {}, kBlock});
    std::vector<Allocation> held;
    std::vector<std::uint64_t> found;
    while (found.size() < count) {
      held.push_back(pool_->allocate(kBlock, 16, MemoryUse::device).value());
      if (held.back().offset == 0) found.push_back(held.back().bound_size / kBlock);
    }
    for (const Allocation& each : held) pool_->free(each);
    return found;
  };
  EXPECT_THAT(lengths(7), ElementsAre(1, 1, 2, 4, 8, 16, 16));
  device_.edit().max_memory_allocation_count = 24;
  EXPECT_THAT(lengths(5), ElementsAre(1, 1, 2, 16, 16)) << "few are left, so they are long";
}

TEST_F(MemoryPoolTest, TellsOfPressureByCapAndByBudget) {
  discrete();
  device_.edit().memory_budget = true;
  driver_.budget.heapBudget[0] = 1000 * kBlock;
  auto& memory = pool();
  const auto held = memory.allocate(kBlock, 16, MemoryUse::device);
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(memory.pressure().over);
  memory.set_cap(kBlock / 2);
  EXPECT_TRUE(memory.pressure().over);
  EXPECT_THAT(memory.pressure().numbers,
              HasSubstr(std::to_string(kBlock) + " of " + std::to_string(kBlock / 2)));
  memory.set_cap(2 * kBlock);
  EXPECT_FALSE(memory.pressure().over);
  EXPECT_FALSE(memory.pressure(kBlock).over);
  EXPECT_TRUE(memory.pressure(kBlock + 1).over) << "no room for that much more";
  memory.set_cap(0);
  driver_.budget.heapUsage[0] = 1000 * kBlock + 1;
  EXPECT_TRUE(memory.pressure().over);
  driver_.budget.heapUsage[0] = 960 * kBlock;
  EXPECT_FALSE(memory.pressure().over);
  EXPECT_TRUE(memory.pressure(1).over) << "no more than before";
  driver_.budget.heapUsage[0] = 940 * kBlock;
  EXPECT_FALSE(memory.pressure(kBlock).over);
  EXPECT_TRUE(memory.pressure(20 * kBlock).over);
  memory.free(*held);
}

TEST_F(MemoryPoolTest, KeepsRelatedAllocationsTogether) {
  discrete();
  MemoryPool& memory = pool();
  // A block with enough free memory, but in two pieces.
  std::vector<Allocation> filler;
  for (const std::uint64_t size : {20000, 8192, 20000})
    filler.push_back(memory.allocate(size, 16, MemoryUse::device).value());
  memory.free(filler[0]);
  const std::vector<std::uint64_t> sizes{100, 3000, 1, 16000, 4000};
  const auto parts = memory.allocate_together(sizes, 256, MemoryUse::device);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  ASSERT_EQ(parts->size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Allocation& part = (*parts)[i];
    EXPECT_EQ(part.block, parts->front().block);
    EXPECT_EQ(part.buffer, parts->front().buffer);
    EXPECT_EQ(part.size, sizes[i]);
    EXPECT_EQ(part.offset % 256, 0u);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_TRUE(part.offset >= (*parts)[j].offset + sizes[j] ||
                  (*parts)[j].offset >= part.offset + sizes[i])
          << i << " and " << j;
  }
  EXPECT_NE(parts->front().block, filler[1].block);
  EXPECT_EQ(memory.stats().bytes_in_use, 8192u + 20000 + 100 + 3000 + 1 + 16000 + 4000);
  EXPECT_EQ(memory.stats().allocation_count, 7u);
  for (const Allocation& part : *parts) memory.free(part);
  EXPECT_EQ(memory.allocate_together(std::vector<std::uint64_t>{100, 0}, 256, MemoryUse::device).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(
      memory.allocate_together(std::vector<std::uint64_t>{1 << 26, (1 << 26) + 1}, 256, MemoryUse::device)
          .error()
          .code,
      ErrorCode::unsupported);
  memory.free(filler[1]);
  memory.free(filler[2]);
  EXPECT_EQ(memory.stats().allocation_count, 0u);
}

}  // namespace
}  // namespace imprint::vk

#pragma once
// A block of the memory pool: one VkBuffer over all of one VkDeviceMemory.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compute/vk/device.h"
#include "compute/vk/handle.h"
#include "compute/vk/memory/block_allocator.h"
#include "compute/vk/memory/memory_pool.h"

namespace imprint::vk {

const char* use_name(MemoryUse use);
bool is_mapped(MemoryUse use);

// A block's device memory. The host's calls or the driver free it.
class BlockMemory {
 public:
  BlockMemory() = default;
  BlockMemory(const Device& device, VkDeviceMemory memory, const DeviceMemoryCalls& calls)
      : device_(&device), memory_(memory), calls_(calls) {}
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(BlockMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~BlockMemory() {
    if (!memory_) return;
    if (calls_.free)
      calls_.free(calls_.user, memory_);
    else
      device_->functions().vkFreeMemory(device_->handle(), memory_, device_->allocation_callbacks());
  }
  VkDeviceMemory get() const { return memory_; }

 private:
  const Device* device_ = nullptr;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  DeviceMemoryCalls calls_;
};

// Allocations of one kind share blocks.
struct BlockKind {
  MemoryUse use = MemoryUse::device;
  bool yields = false;
  bool dedicated = false;  // to one allocation; freed with it
  bool operator==(const BlockKind&) const = default;
};

// A buffer over all of one VkDeviceMemory.
struct MemoryBlock {
  MemoryBlock(const BlockKind& k, std::uint64_t s) : kind(k), size(s), ranges(s) {}
  BlockKind kind;
  std::uint64_t size;
  BlockAllocator ranges;
  std::uint64_t reserved = 0;  // bytes of the VkDeviceMemory, for the cap
  std::uint32_t memory_type = 0;
  void* mapped = nullptr;
  BlockMemory memory;  // freed after the buffer, which unmaps it
  Handle<VkBuffer> buffer;
};

// The memory types that serve a use, best first. Equal types keep the driver's order, which puts the faster
// first.
std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& properties,
                                        std::uint32_t allowed, MemoryUse use);

// A block's buffer, shared by `families` if there are two or more. dedicated: null for the pool's own blocks.
Result<Handle<VkBuffer>> create_block_buffer(Device& device, std::uint64_t size,
                                             std::span<const std::uint32_t> families,
                                             const DedicatedBuffer* dedicated);

// Tries to allocate the block's memory from one type. Returns the VkResult of the allocation. On success the
// block owns the memory. exported: handle types; 0 for none.
VkResult allocate_block_memory(MemoryBlock& block, const Device& device, const DeviceMemoryCalls& calls,
                               std::uint64_t bytes, std::uint32_t type,
                               VkExternalMemoryHandleTypeFlags exported);

// Binds the buffer to its memory and maps it where its use needs that.
Result<> bind_block(MemoryBlock& block, Device& device, const std::string& debug_name);

}  // namespace imprint::vk

#pragma once
// Device memory by ranges: large blocks, each covered by one VkBuffer, sub-allocated with alignment.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::vk {

// Which heap and mapping a block has.
enum class MemoryUse : std::uint8_t {
  device,   // fastest for the GPU; not mapped
  upload,   // host writes, GPU reads: mapped, coherent
  readback  // GPU writes, host reads: mapped, coherent, host-cached where there is such a type
};

// The host's replacement for vkAllocateMemory and vkFreeMemory. Any thread; Imprint holds no lock.
struct DeviceMemoryCalls {
  VkResult (*allocate)(void* user, const VkMemoryAllocateInfo& info, VkDeviceMemory* memory) = nullptr;
  void (*free)(void* user, VkDeviceMemory memory) = nullptr;
  void* user = nullptr;
};

struct MemoryPoolOptions {
  // The longest block, clamped to maxStorageBufferRange. A larger request gets a block of its own, up to that
  // range.
  std::uint64_t block_bytes = 32ull << 20;
  std::uint64_t cap_bytes = 0;  // hard limit on reserved bytes, passing it is out_of_device_memory; 0: none
  DeviceMemoryCalls calls;      // both null: the driver's
  // The first block of a kind of memory. Each later block of the kind is as long as all before it together,
  // so that at most about half of what is reserved is unused. Where the device allows few allocations, blocks
  // start long.
  std::uint64_t first_block_bytes = 256ull << 10;
  // Queue families that use every block; fewer than two: the device's own.
  std::vector<std::uint32_t> families;
};

// A range of a block's buffer. A value: the pool frees it only when asked.
struct Allocation {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;  // bytes from the start of `buffer`, a multiple of the requested alignment
  std::uint64_t size = 0;    // bytes, as requested
  // The range that descriptors bind: all of a block's buffer, or the borrowed range of another owner's.
  std::uint64_t bound_offset = 0, bound_size = 0;
  void* mapped = nullptr;   // host address of `offset`, for upload and readback
  std::uint32_t block = 0;  // the pool's name for the block
  explicit operator bool() const { return buffer != VK_NULL_HANDLE; }
};

// A buffer in memory of its own, for sharing with others.
struct DedicatedBuffer {
  std::uint64_t size = 0;                        // bytes, >= 1
  VkBufferUsageFlags usage = 0;                  // added to that of every block
  std::span<const std::uint32_t> families;       // two or more: VK_SHARING_MODE_CONCURRENT among them
  VkExternalMemoryHandleTypeFlags exported = 0;  // for import by another device; the extension is enabled
};

// How a block's memory was allocated, for an importer.
struct BlockMemoryInfo {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::uint64_t bytes = 0;
  std::uint32_t memory_type = 0;
};

struct MemoryStats {
  std::uint64_t bytes_in_use = 0;    // sum of live allocations
  std::uint64_t bytes_reserved = 0;  // sum of blocks
  std::uint64_t bytes_peak = 0;      // highest bytes_in_use
  std::uint64_t largest_free = 0;    // largest free range inside reserved blocks
  std::uint32_t block_count = 0;
  std::uint64_t allocation_count = 0;    // live
  std::uint64_t device_allocations = 0;  // vkAllocateMemory calls ever made
};

// Whether more is reserved than the cap or the driver's budget of some heap allows.
struct MemoryPressure {
  bool over = false;
  std::string numbers;  // in words, when over
};

// Thread-safe. Buffers have STORAGE | UNIFORM | TRANSFER_SRC | TRANSFER_DST usage. An empty block stays
// reserved until trim(), or until the cap needs its bytes. With VK_EXT_memory_budget the pool takes no block
// that exceeds the driver's budget. It never holds more VkDeviceMemory than maxMemoryAllocationCount; the
// host needs its share too.
class MemoryPool {
 public:
  virtual ~MemoryPool() = default;

  // size >= 1 bytes; alignment a power of two, raised to minStorageBufferOffsetAlignment and
  // minUniformBufferOffsetAlignment. yields: the range may be freed for a while, so it lies in a small block
  // that then becomes empty. Errors: out_of_device_memory (the cap, the device or the number of allocations;
  // says what was asked, what is in use, the limit), invalid_argument (size 0, alignment not a power of two),
  // unsupported (MemoryUse::device, longer than maxStorageBufferRange), device_lost.
  virtual Result<Allocation> allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                                      bool yields = false) = 0;

  // Several ranges of one block, freed one by one. Errors: as allocate; unsupported when their sum exceeds
  // maxStorageBufferRange.
  virtual Result<std::vector<Allocation>> allocate_together(std::span<const std::uint64_t> sizes,
                                                            std::uint64_t alignment, MemoryUse use) = 0;

  // MemoryUse::device of any length, in a block of its own that is freed with it. Descriptors bind at most
  // maxStorageBufferRange of it at a time. Errors: as allocate.
  virtual Result<Allocation> allocate_long(std::uint64_t size, bool yields) = 0;

  // MemoryUse::device. Errors: as allocate.
  virtual Result<Allocation> allocate_dedicated(const DedicatedBuffer& description) = 0;
  virtual BlockMemoryInfo memory_of(const Allocation& allocation) const = 0;  // of a live allocation

  // At once: call when the GPU is done with it. Device::retire waits for that.
  virtual void free(const Allocation& allocation) = 0;

  // Frees every block without live allocations; returns their bytes.
  virtual std::uint64_t trim() = 0;

  // 0: none. Blocks beyond a lower cap stay; see pressure().
  virtual void set_cap(std::uint64_t bytes) = 0;
  // Asks the driver, where VK_EXT_memory_budget is declared. more: bytes of device memory that the caller
  // wants. Then pressure begins at 95 % of the budget, so that evicted memory does not return at once.
  virtual MemoryPressure pressure(std::uint64_t more = 0) const = 0;

  virtual MemoryStats stats() const = 0;
};

}  // namespace imprint::vk

#pragma once
// The pooled allocator: large blocks of device memory, each covered by one VkBuffer, sub-allocated with
// alignment.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::vk {

class Device;

// Which heap and mapping a block has.
enum class MemoryUse : std::uint8_t {
  device,   // fastest for the GPU; not mapped
  upload,   // host writes, GPU reads: mapped, coherent
  readback  // GPU writes, host reads: mapped, coherent, host-cached where there is such a type
};

// The host's own device memory, in the place of vkAllocateMemory and vkFreeMemory. Any thread; no lock of
// ours is held.
struct DeviceMemoryCalls {
  VkResult (*allocate)(void* user, const VkMemoryAllocateInfo& info, VkDeviceMemory* memory) = nullptr;
  void (*free)(void* user, VkDeviceMemory memory) = nullptr;
  void* user = nullptr;
};

struct MemoryPoolOptions {
  std::uint64_t block_bytes =
      32ull
      << 20;  // clamped to maxStorageBufferRange; a larger request gets a block of its own up to that range
  std::uint64_t cap_bytes =
      0;  // hard limit on reserved bytes; 0 = none. Passing it is out_of_device_memory, never growth.
  DeviceMemoryCalls calls;  // both null: the driver's
};

// A range of a block's buffer. A value: freeing is explicit, through the pool.
struct Allocation {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;        // bytes from the start of `buffer`, multiple of the requested alignment
  std::uint64_t size = 0;          // bytes, as requested
  std::uint64_t bound_offset = 0;  // what descriptors bind: of a block all of its buffer, of a buffer of
                                   // somebody else's the range that is ours
  std::uint64_t bound_size = 0;
  void* mapped = nullptr;   // host address of `offset`, for upload and readback
  std::uint32_t block = 0;  // the pool's name for the block
  explicit operator bool() const { return buffer != VK_NULL_HANDLE; }
};

// A buffer that others use too, in memory of its own.
struct DedicatedBuffer {
  std::uint64_t size = 0;                   // bytes, >= 1
  VkBufferUsageFlags usage = 0;             // beside that of every block
  std::span<const std::uint32_t> families;  // two or more: VK_SHARING_MODE_CONCURRENT among them
  VkExternalMemoryHandleTypeFlags exported =
      0;  // another device may import the memory by a handle of these types; the extension is enabled
};

// What a block's memory was taken with, for whoever imports it elsewhere.
struct BlockMemoryInfo {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::uint64_t bytes = 0;
  std::uint32_t memory_type = 0;
};

struct MemoryStats {
  std::uint64_t bytes_in_use = 0;    // sum of live allocations
  std::uint64_t bytes_reserved = 0;  // sum of blocks
  std::uint64_t bytes_peak = 0;      // highest bytes_in_use
  std::uint64_t largest_free = 0;    // largest single free range inside reserved blocks
  std::uint32_t block_count = 0;
  std::uint64_t allocation_count = 0;    // live
  std::uint64_t device_allocations = 0;  // vkAllocateMemory calls ever made
};

// Whether more is reserved than there may be.
struct MemoryPressure {
  bool over =
      false;  // the cap, or the driver's budget of some heap; or there is no room for what was asked about
  std::string numbers;  // in words, when over
};

// Thread-safe. Buffers carry STORAGE | UNIFORM | TRANSFER_SRC | TRANSFER_DST usage. A block stays reserved
// when its last allocation goes, until trim() or until the cap asks for its bytes. With VK_EXT_memory_budget
// a block that the driver's budget has no room for is not taken. Blocks are counted against
// maxMemoryAllocationCount, of which the host needs its part too: no more are taken than the device allows in
// all.
class MemoryPool {
 public:
  // The device outlives its pool, and creates it: rooms use Device::memory().
  static std::unique_ptr<MemoryPool> create(Device& device, const MemoryPoolOptions& options);
  virtual ~MemoryPool() = default;

  // size >= 1 bytes; alignment a power of two (raised to minStorageBufferOffsetAlignment and
  // minUniformBufferOffsetAlignment). Errors: out_of_device_memory (cap, device or number of allocations:
  // says what was asked, what is in use, the limit), invalid_argument (size 0, alignment not a power of two),
  // unsupported (longer than maxStorageBufferRange), device_lost. yields: what can be given back for a while
  // lies in small blocks of its own, so that memory really comes free with it.
  virtual Result<Allocation> allocate(std::uint64_t size, std::uint64_t alignment, MemoryUse use,
                                      bool yields = false) = 0;

  // Several ranges of one block. Each is freed by itself. Errors: as above, unsupported when together they
  // are longer than maxStorageBufferRange.
  virtual Result<std::vector<Allocation>> allocate_together(std::span<const std::uint64_t> sizes,
                                                            std::uint64_t alignment, MemoryUse use) = 0;

  // Device memory. Errors: as above.
  virtual Result<Allocation> allocate_dedicated(const DedicatedBuffer& description) = 0;
  // The memory that a live allocation lies in.
  virtual BlockMemoryInfo memory_of(const Allocation& allocation) const = 0;

  // Gives a range back at once. Call only when the GPU is done with it: otherwise retire it through
  // Device::retire.
  virtual void free(const Allocation& allocation) = 0;

  // Frees every block without live allocations; returns the bytes given back to the driver.
  virtual std::uint64_t trim() = 0;

  // 0 = none. What is reserved beyond it stays; see pressure().
  virtual void set_cap(std::uint64_t bytes) = 0;
  // Asks the driver, where VK_EXT_memory_budget is declared. `more`: bytes of device memory that somebody
  // would like; then over already when they leave less than a twentieth of the budget, so that what was given
  // back is not taken again and again.
  virtual MemoryPressure pressure(std::uint64_t more = 0) const = 0;

  virtual MemoryStats stats() const = 0;
};

}  // namespace imprint::vk

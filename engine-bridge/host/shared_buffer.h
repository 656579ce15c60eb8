#pragma once
// Buffers that the host and our programs both use, with no copy between: the host's, as declared, and ours,
// with the usage that the host asks for.
//
// Order. On the queue that host and guest share (and in a host's command buffer) the frame's entry barrier
// makes what the host wrote visible to us, and its exit barrier what we wrote to the host, for the stages and
// accesses declared here. Between queues a semaphore does that: see SubmitInfo. Where the families differ and
// the buffer is VK_SHARING_MODE_EXCLUSIVE it changes owners: the host releases it to our family,
// Context::acquire takes it over at the start of the frame's work, Context::release gives it back at the end,
// and the host acquires it; see transfers().

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// A range of a VkBuffer. Vulkan cannot be asked for any of it, so it is declared as the buffer was made.
struct HostBuffer {
  std::string name = "buffer";
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;  // bytes, a multiple of minStorageBufferOffsetAlignment and of 16
  std::uint64_t size =
      0;  // bytes, a multiple of 4; what is longer than maxStorageBufferRange is used in parts
  VkBufferUsageFlags usage = 0;  // STORAGE_BUFFER is required; TRANSFER_SRC to read it back, TRANSFER_DST to
                                 // write it from the processor
  VkSharingMode sharing = VK_SHARING_MODE_EXCLUSIVE;
  std::vector<std::uint32_t> families;     // exclusive: the one that the host uses it in, or none for ours;
                                           // concurrent: all, ours among them
  VkMemoryPropertyFlags memory_flags = 0;  // of the memory type that it is bound to
  VkDeviceAddress device_address = 0;  // of the buffer's start, or 0; needs the usage SHADER_DEVICE_ADDRESS
  VkPipelineStageFlags stages =
      0;  // where the host uses it, on the queue that it shares with us; 0 = on no such queue
  VkAccessFlags access = 0;  // and how
};

// A buffer of ours for the host to use too.
struct SharedBufferRequest {
  std::string name = "buffer";
  std::uint64_t size = 0;
  VkBufferUsageFlags usage =
      0;  // beside STORAGE, UNIFORM, TRANSFER_SRC and TRANSFER_DST: VERTEX, INDEX, INDIRECT, ...
  VkSharingMode sharing = VK_SHARING_MODE_EXCLUSIVE;
  std::vector<std::uint32_t> families;  // as of HostBuffer
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
  // Of memory that another device has too: it passes to VK_QUEUE_FAMILY_EXTERNAL and back, whatever
  // `families` says, and is exclusive. See device_link.h.
  VkExternalMemoryHandleTypeFlags exported = 0;
};

// The same memory on the host's device, where ours is another. Goes with the buffer; the host's GPU is done
// with it then.
class HostSide {
 public:
  virtual ~HostSide() = default;
  virtual VkBuffer buffer() const = 0;
  virtual VkDeviceMemory memory() const = 0;
};

// A semaphore of the host's.
struct HostSemaphore {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  bool timeline = false;
  std::uint64_t value = 0;  // of a timeline semaphore
};

class SharedBuffer {
 public:
  // Errors name the field: invalid_argument (null, size, offset, usage, sharing, families, memory flags,
  // address, stages), unsupported (a memory that no shader can store to).
  static Result<std::shared_ptr<SharedBuffer>> import(vk::Device& device, const HostBuffer& host);
  // Errors: the same, unsupported (a usage that ours cannot have: by device address; between devices, what
  // came after Vulkan 1.0), out_of_device_memory.
  static Result<std::shared_ptr<SharedBuffer>> create(vk::Device& device, const SharedBufferRequest& request);
  ~SharedBuffer();  // ours is freed when the GPU is done with it, or with its context; the host's stays the
                    // host's
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  static VkBufferUsageFlags usage_of(const SharedBufferRequest& request);  // all that the buffer has then
  const HostBuffer& description() const { return description_; }
  bool imported() const { return !allocation_; }
  VkDeviceMemory memory() const { return memory_info().memory; }  // of ours; null for the host's
  vk::BlockMemoryInfo memory_info() const;
  const HostSide* host_side() const { return host_side_.get(); }  // null: one device
  void set_host_side(std::unique_ptr<HostSide> side) { host_side_ = std::move(side); }
  // A part of it, of at most maxStorageBufferRange bytes from a multiple of buffer_range_alignment on.
  static BufferRange range(const std::shared_ptr<const SharedBuffer>& buffer, std::uint64_t first,
                           std::uint64_t bytes);
  static BufferRange range(const std::shared_ptr<const SharedBuffer>& buffer) {
    return range(buffer, 0, buffer->description_.size);
  }

  bool transfers() const { return transfers_; }  // families differ, and it belongs to one at a time
  std::uint32_t host_family() const;
  bool ours() const { return ours_; }  // whose turn it is; always true when nothing is handed over

 private:
  friend class FrameBorder;
  explicit SharedBuffer(vk::Device& device) : device_(&device) {}
  void close();  // the device goes, and the GPU is done

  vk::Device* device_;  // null when closed
  HostBuffer description_;
  vk::Allocation allocation_;  // null: the host's
  std::uint32_t our_family_ = 0;
  bool transfers_ = false, ours_ = true, external_ = false;
  std::unique_ptr<HostSide> host_side_;
  Commands acquire_, release_;  // the border's, which outlive it
};

}  // namespace imprint::bridge

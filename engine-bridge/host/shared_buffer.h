#pragma once
// Buffers that the host and Imprint's programs both use, without a copy: the host's own, as declared, or one
// of Imprint's with the usage that the host needs.
//
// On the queue that both share, the frame's entry and exit barriers order their accesses, for the stages and
// accesses declared here. Between queues, semaphores do that (SubmitInfo). A VK_SHARING_MODE_EXCLUSIVE buffer
// whose families differ changes owner: the host releases it to Imprint's family, Context::acquire takes it at
// the start of the frame's work, Context::release gives it back at the end, and the host acquires it. See
// transfers().

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// A range of a VkBuffer, declared as the host made it: Vulkan has no query for this.
struct HostBuffer {
  std::string name = "buffer";
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;  // bytes; a multiple of minStorageBufferOffsetAlignment and of 16
  std::uint64_t size = 0;    // bytes; a multiple of 4. Beyond maxStorageBufferRange it is used in parts.
  // STORAGE_BUFFER is required. TRANSFER_SRC allows readback, TRANSFER_DST writes from the CPU.
  VkBufferUsageFlags usage = 0;
  VkSharingMode sharing = VK_SHARING_MODE_EXCLUSIVE;
  // Exclusive: the family that the host uses it in; empty: Imprint's. Concurrent: all, Imprint's included.
  std::vector<std::uint32_t> families;
  VkPipelineStageFlags stages = 0;         // of the host's accesses on the shared queue; 0 = none there
  VkAccessFlags access = 0;                // the host's accesses in those stages
  VkMemoryPropertyFlags memory_flags = 0;  // of the memory type that it is bound to
  VkDeviceAddress device_address = 0;      // of the buffer's start, or 0; needs usage SHADER_DEVICE_ADDRESS
};

// A buffer that Imprint creates for the host to use too. Fields that HostBuffer has mean the same.
struct SharedBufferRequest {
  std::string name = "buffer";
  std::uint64_t size = 0;
  VkBufferUsageFlags usage = 0;  // added to STORAGE, UNIFORM, TRANSFER_SRC and TRANSFER_DST
  VkSharingMode sharing = VK_SHARING_MODE_EXCLUSIVE;
  std::vector<std::uint32_t> families;
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
  // Not 0: another device imports the memory. The buffer is exclusive and changes owner with
  // VK_QUEUE_FAMILY_EXTERNAL; `families` is ignored. See device_link.h.
  VkExternalMemoryHandleTypeFlags exported = 0;
};

// The same memory on the host's device, when Imprint uses a second device. Destroyed with the SharedBuffer;
// the host's GPU has finished with it by then.
class HostSide {
 public:
  virtual ~HostSide() = default;
  virtual VkBuffer buffer() const = 0;
  virtual VkDeviceMemory memory() const = 0;
};

class SharedBuffer {
 public:
  // Errors name the field: invalid_argument; unsupported (memory that shaders cannot write).
  static Result<std::shared_ptr<SharedBuffer>> import(vk::Device& device, const HostBuffer& host);
  // Errors: the same; unsupported (a usage that Imprint's memory cannot have), out_of_device_memory.
  static Result<std::shared_ptr<SharedBuffer>> create(vk::Device& device, const SharedBufferRequest& request);
  // Imprint's buffer is freed once the GPU has finished with it, or with its context. The host's is left
  // alone.
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  static VkBufferUsageFlags usage_of(const SharedBufferRequest& request);  // the buffer's whole usage
  const HostBuffer& description() const { return description_; }
  bool imported() const { return !allocation_; }
  VkDeviceMemory memory() const { return memory_info().memory; }  // null: the buffer is the host's
  vk::BlockMemoryInfo memory_info() const;
  const HostSide* host_side() const { return host_side_.get(); }  // null: one device
  void set_host_side(std::unique_ptr<HostSide> side) { host_side_ = std::move(side); }
  // A part: `first` is a multiple of buffer_range_alignment, `bytes` at most maxStorageBufferRange.
  static BufferRange range(const std::shared_ptr<const SharedBuffer>& buffer, std::uint64_t first,
                           std::uint64_t bytes);
  static BufferRange range(const std::shared_ptr<const SharedBuffer>& buffer) {
    return range(buffer, 0, buffer->description_.size);
  }

  // It is exclusive and the families differ, so that acquire and release change its owner.
  bool transfers() const { return transfers_; }
  std::uint32_t host_family() const;
  bool owned_by_imprint() const { return owned_by_imprint_; }  // always true without transfers()

 private:
  friend class FrameSync;
  explicit SharedBuffer(vk::Device& device) : device_(&device) {}
  void close();  // before the device goes; the GPU has finished

  vk::Device* device_;  // null when closed
  HostBuffer description_;
  vk::Allocation allocation_;  // null: the buffer is the host's
  std::uint32_t imprint_family_ = 0;
  bool transfers_ = false, owned_by_imprint_ = true, external_ = false;
  std::unique_ptr<HostSide> host_side_;
  Commands acquire_, release_;  // FrameSync's, which outlive it
};

}  // namespace imprint::bridge

#pragma once
// Small command buffers, recorded once outside a frame and used in every frame.

#include <vulkan/vulkan_core.h>

#include <functional>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// All compute and transfer accesses before it, against all after it. Every slice starts with it.
void record_global_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer);
// How the host uses shared buffers on the shared queue.
struct HostUse {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
};
// Makes the host's writes visible to Imprint. A frame starts with it where the host shares buffers.
void record_entry_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer,
                          const HostUse& host);
// Makes Imprint's writes visible to later compute and transfer, to the CPU and to the host's use. Every frame
// ends with it.
void record_exit_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer, const HostUse& host);

class CommandSet {
 public:
  static Result<std::unique_ptr<CommandSet>> create(vk::Device& device);
  ~CommandSet();
  CommandSet(const CommandSet&) = delete;
  CommandSet& operator=(const CommandSet&) = delete;

  // Records the same content at both levels. shared: it may be pending more than once at a time.
  Result<Commands> record(bool shared, const std::function<void(VkCommandBuffer)>& content);
  Result<VkCommandBuffer> record(VkCommandBufferLevel level, bool shared,
                                 const std::function<void(VkCommandBuffer)>& content);
  void retire(const Commands& commands);  // freed once the newest ticket is complete

 private:
  explicit CommandSet(vk::Device& device) : device_(device) {}
  void free(const Commands& commands);

  vk::Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
};

}  // namespace imprint::bridge

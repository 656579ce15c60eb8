#pragma once
// Small command buffers recorded once, off the frame, and used in every frame.

#include <vulkan/vulkan_core.h>

#include <functional>
#include <memory>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// All of compute's and transfer's accesses before against all after. What every slice of ours starts with.
void record_global_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer);
// How the host uses what it shares with us, on the queue that it shares with us.
struct HostUse {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
};
// What the host did, made visible to us. What a frame of ours begins with where the host shares buffers.
void record_entry_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer,
                          const HostUse& host);
// What we wrote, made visible to later compute and transfer, to the host's processor and to what it shares.
// What every frame of ours ends with.
void record_exit_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer, const HostUse& host);

class CommandSet {
 public:
  static Result<std::unique_ptr<CommandSet>> create(vk::Device& device);
  ~CommandSet();
  CommandSet(const CommandSet&) = delete;
  CommandSet& operator=(const CommandSet&) = delete;

  // The same content at both levels. `shared`: may be pending more than once at a time.
  Result<Commands> record(bool shared, const std::function<void(VkCommandBuffer)>& content);
  Result<VkCommandBuffer> record(VkCommandBufferLevel level, bool shared,
                                 const std::function<void(VkCommandBuffer)>& content);
  void retire(const Commands& commands);  // behind the newest ticket

 private:
  explicit CommandSet(vk::Device& device) : device_(device) {}
  void free(const Commands& commands);

  vk::Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
};

}  // namespace imprint::bridge

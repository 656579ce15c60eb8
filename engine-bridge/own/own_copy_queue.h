#pragma once
// The copy queue of a device that Imprint opens: two queues of a family for transfers, one for each
// direction, so that copies to the device do not wait for copies that wait for kernels. Where the device has
// fewer queues, both directions share one, or the main queue.

#include <vulkan/vulkan_core.h>

#include <array>
#include <memory>

#include "compute/program/copy_queue.h"
#include "compute/vk/device.h"
#include "engine-bridge/host/host_queue.h"

namespace imprint::bridge {

class OwnCopyQueue final : public program::CopyQueue {
 public:
  // The queues belong to the calling thread, and outlive this; the device goes first. Errors: the driver's.
  static Result<std::unique_ptr<OwnCopyQueue>> create(vk::Device& device, HostQueue& main,
                                                      std::uint32_t family,
                                                      const std::array<VkQueue, 2>& queues);
  ~OwnCopyQueue() override;  // waits a second for copies

  Result<VkCommandBuffer> record(const std::function<void(VkCommandBuffer)>& body) override;
  void free(VkCommandBuffer commands) override;
  Result<std::uint64_t> submit(Direction direction, VkCommandBuffer commands) override;
  Result<bool> is_complete(Direction direction, std::uint64_t point) override;
  Result<> wait(Direction direction, std::uint64_t point, std::uint64_t timeout_ns) override;
  Result<vk::Ticket> submit_after_copies(VkCommandBuffer commands) override;

 private:
  struct Line {
    VkQueue queue = VK_NULL_HANDLE;
    VkSemaphore timeline = VK_NULL_HANDLE;
    std::uint64_t newest = 0;
  };
  OwnCopyQueue(vk::Device& device, HostQueue& main);
  Line& line(Direction direction) { return lines_[direction == Direction::to_device ? 1 : 0]; }
  VkResult wait_for(const Line& line, std::uint64_t point, std::uint64_t timeout_ns) const;
  Error error(const char* call, VkResult result) { return vk::vulkan_error(device_, call, result); }

  vk::Device& device_;  // not in the destructor
  const vk::Functions functions_;
  const VkDevice handle_;
  HostQueue& main_;
  std::array<Line, 2> lines_;  // by Direction
  VkCommandPool pool_ = VK_NULL_HANDLE;
};

}  // namespace imprint::bridge

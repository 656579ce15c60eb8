#pragma once
// One submission and the arrays that it points to, for vkQueueSubmit and vkQueueSubmit2. Reused, so that
// submitting allocates nothing.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <vector>

#include "compute/vk/queue.h"
#include "engine-bridge/host/host_semaphore.h"

namespace imprint::bridge {

class Submission {
 public:
  Submission();  // reserves room for a large frame

  // timeline: signalled with the ticket's value; null: `fence` is signalled, or nothing. Compute and transfer
  // stages wait for the host's semaphores. `label` is a constant.
  void fill(vk::Ticket ticket, VkSemaphore timeline, VkFence fence, std::span<const VkCommandBuffer> commands,
            std::span<const HostSemaphore> waits, std::span<const HostSemaphore> completions,
            const char* label = "imprint");

  vk::Ticket ticket() const { return ticket_; }
  VkFence fence() const { return fence_; }
  const char* label() const { return label_; }
  const VkSubmitInfo& info();    // valid until the next call
  const VkSubmitInfo2& info2();  // the same; signals after all commands

 private:
  vk::Ticket ticket_;
  VkFence fence_ = VK_NULL_HANDLE;
  bool has_values_ = false;
  const char* label_ = "";
  std::vector<VkCommandBuffer> commands_;
  std::vector<VkSemaphore> waits_, completions_;
  std::vector<std::uint64_t> wait_values_, signal_values_;
  std::vector<VkPipelineStageFlags> wait_stages_;
  VkTimelineSemaphoreSubmitInfo values_{};
  VkSubmitInfo info_{};
  std::vector<VkSemaphoreSubmitInfo> waits_2_, signals_2_;
  std::vector<VkCommandBufferSubmitInfo> commands_2_;
  VkSubmitInfo2 info_2_{};
};

}  // namespace imprint::bridge

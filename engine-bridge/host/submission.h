#pragma once
// One submission with what it points to, in the form of vkQueueSubmit and in that of vkQueueSubmit2. Kept
// from one to the next for its memory.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <vector>

#include "compute/vk/queue.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

class Submission {
 public:
  Submission();  // with room for as much as frames hand over together, also when a slow device made them wait

  // timeline: signalled with the ticket's value; null: `fence` tells, or nothing. The host's semaphores are
  // waited for in compute and transfer.
  void fill(vk::Ticket ticket, VkSemaphore timeline, VkFence fence, std::span<const VkCommandBuffer> commands,
            std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals,
            const char* label = "imprint");

  vk::Ticket ticket() const { return ticket_; }
  VkFence fence() const { return fence_; }
  const char* label() const { return label_; }
  const VkSubmitInfo& info();    // valid until the next call of anything here
  const VkSubmitInfo2& info2();  // the same; what it signals does not wait for stages that we do not use

 private:
  vk::Ticket ticket_;
  VkFence fence_ = VK_NULL_HANDLE;
  bool has_values_ = false;
  const char* label_ = "";  // of a constant
  std::vector<VkCommandBuffer> commands_;
  std::vector<VkSemaphore> waits_, signals_;
  std::vector<std::uint64_t> wait_values_, signal_values_;
  std::vector<VkPipelineStageFlags> wait_stages_;
  VkTimelineSemaphoreSubmitInfo values_{};
  VkSubmitInfo info_{};
  std::vector<VkSemaphoreSubmitInfo> waits_2_, signals_2_;
  std::vector<VkCommandBufferSubmitInfo> commands_2_;
  VkSubmitInfo2 info_2_{};
};

}  // namespace imprint::bridge

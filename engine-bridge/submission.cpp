#include "engine-bridge/submission.h"

namespace imprint::bridge {
namespace {

void list(std::span<const HostSemaphore> from, std::vector<VkSemaphore>& semaphores, std::vector<std::uint64_t>& values) {
  semaphores.clear();
  values.clear();
  for (const HostSemaphore& semaphore : from) {
    semaphores.push_back(semaphore.semaphore);
    values.push_back(semaphore.value);
  }
}

}  // namespace

void Submission::fill(vk::Ticket ticket, VkSemaphore timeline, VkFence fence, std::span<const VkCommandBuffer> commands,
                      std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals) {
  ticket_ = ticket;
  fence_ = fence;
  has_values_ = timeline != VK_NULL_HANDLE;
  commands_.assign(commands.begin(), commands.end());
  list(waits, waits_, wait_values_);
  list(signals, signals_, signal_values_);
  wait_stages_.assign(waits.size(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT);  // all that we do
  if (!timeline) return;
  signals_.push_back(timeline);
  signal_values_.push_back(ticket.value);
}

const VkSubmitInfo& Submission::info() {
  values_ = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values_.waitSemaphoreValueCount = static_cast<std::uint32_t>(wait_values_.size());
  values_.pWaitSemaphoreValues = wait_values_.data();
  values_.signalSemaphoreValueCount = static_cast<std::uint32_t>(signal_values_.size());
  values_.pSignalSemaphoreValues = signal_values_.data();
  info_ = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  if (has_values_) info_.pNext = &values_;
  info_.waitSemaphoreCount = static_cast<std::uint32_t>(waits_.size());
  info_.pWaitSemaphores = waits_.data();
  info_.pWaitDstStageMask = wait_stages_.data();
  info_.commandBufferCount = static_cast<std::uint32_t>(commands_.size());
  info_.pCommandBuffers = commands_.data();
  info_.signalSemaphoreCount = static_cast<std::uint32_t>(signals_.size());
  info_.pSignalSemaphores = signals_.data();
  return info_;
}

}  // namespace imprint::bridge

#include "engine-bridge/queue_access.h"

#include <string>

namespace imprint::bridge {

Status check_queue_access(const QueueAccess& access) {
  const bool any_way = access.lock || access.unlock || access.submit || access.single_thread;
  if (!access.queue) {
    if (!any_way) return {};
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a way to submit is given, but queue is null: give the VkQueue, or leave all of it empty to record only");
  }
  if (!access.lock != !access.unlock) {
    return make_error(ErrorCode::invalid_argument, std::string("queue access: lock and unlock belong together, but ") +
                                                       (access.lock ? "unlock" : "lock") + " is null");
  }
  const int ways = (access.lock ? 1 : 0) + (access.submit ? 1 : 0) + (access.single_thread ? 1 : 0);
  if (ways == 1) return {};
  if (ways == 0) {
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a queue is given without a way to share it: set lock and unlock, or submit, or single_thread (when the host "
                      "uses this queue only on the thread that calls the frame functions)");
  }
  std::string found;
  if (access.lock) found += "lock and unlock, ";
  if (access.submit) found += "submit, ";
  if (access.single_thread) found += "single_thread, ";
  found.resize(found.size() - 2);
  return make_error(ErrorCode::invalid_argument, "queue access: exactly one way to share the queue is needed, found " + found);
}

VkResult HostQueue::submit_to_host(const VkSubmitInfo& info, VkFence fence) {
  if (access_.submit) return access_.submit(access_.user, access_.queue, 1, &info, fence);
  if (access_.lock) access_.lock(access_.user, access_.queue);
  const VkResult result = device_.functions().vkQueueSubmit(access_.queue, 1, &info, fence);
  if (access_.unlock) access_.unlock(access_.user, access_.queue);
  return result;
}

Result<vk::Ticket> HostQueue::submit(std::span<const VkCommandBuffer> command_buffers) {
  if (device_.lost()) return make_error(ErrorCode::device_lost, "submit: the device was lost");
  const VkSemaphore timeline = in_flight_.timeline();
  VkFence fence = VK_NULL_HANDLE;
  if (!timeline) {
    IMPRINT_ASSIGN(fence, in_flight_.take_fence());
  }
  const vk::Ticket upcoming = device_.completion().upcoming();
  VkTimelineSemaphoreSubmitInfo signal{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  signal.signalSemaphoreValueCount = 1;
  signal.pSignalSemaphoreValues = &upcoming.value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = static_cast<std::uint32_t>(command_buffers.size());
  info.pCommandBuffers = command_buffers.data();
  if (timeline) {
    info.pNext = &signal;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &timeline;
  }
  const VkResult result = submit_to_host(info, fence);
  ++device_.counters().submits;
  if (result != VK_SUCCESS) {
    if (fence) in_flight_.give_back(fence);
    return vk::vulkan_error(device_, "vkQueueSubmit", result);
  }
  const vk::Ticket ticket = device_.completion().next();
  in_flight_.submitted(ticket, fence);
  return ticket;
}

}  // namespace imprint::bridge

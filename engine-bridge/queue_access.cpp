#include "engine-bridge/queue_access.h"

#include <string>

namespace imprint::bridge {

Status check_queue_access(const QueueAccess& access) {
  std::string found;
  int ways = 0;
  const auto way = [&](bool given, const char* name) {
    if (given) found += std::string(ways++ ? ", " : "") + name;
  };
  way(access.lock || access.unlock, "lock and unlock");
  way(access.submit, "submit");
  way(access.run, "run_on_queue");
  way(access.single_thread, "single_thread");
  way(access.internally_synchronized, "internally_synchronized");
  if (!access.queue) {
    if (ways == 0) return {};
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a way to submit is given, but queue is null: give the VkQueue, or leave all of it empty to record only");
  }
  if (!access.lock != !access.unlock) {
    return make_error(ErrorCode::invalid_argument, std::string("queue access: lock and unlock belong together, but ") +
                                                       (access.lock ? "unlock" : "lock") + " is null");
  }
  if (ways == 0) {
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a queue is given without a way to share it: set lock and unlock, or submit, or run_on_queue, or single_thread "
                      "(when the host uses this queue only on the thread that calls the frame functions), or internally_synchronized");
  }
  if (ways > 1) return make_error(ErrorCode::invalid_argument, "queue access: exactly one way to share the queue is needed, found " + found);
  if (access.submit_without_fence && !access.submit) {
    return make_error(ErrorCode::invalid_argument, "queue access: submit_without_fence is set, but the way is " + found + ": it belongs to submit");
  }
  return {};
}

VkResult HostQueue::submit_to_host(const VkSubmitInfo& info, VkFence fence) {
  if (access_.submit) return access_.submit(access_.user, access_.queue, 1, &info, fence);
  struct Work {
    PFN_vkQueueSubmit submit;
    const VkSubmitInfo* info;
    VkFence fence;
    VkResult result;
  } work{device_.functions().vkQueueSubmit, &info, fence, VK_ERROR_UNKNOWN};
  const auto run = [](void* data, VkQueue queue) {
    auto& self = *static_cast<Work*>(data);
    self.result = self.submit(queue, 1, self.info, self.fence);
  };
  if (access_.run) {
    access_.run(access_.user, run, &work);
    return work.result;  // VK_ERROR_UNKNOWN: the host never ran it
  }
  if (access_.lock) access_.lock(access_.user, access_.queue);
  run(&work, access_.queue);
  if (access_.unlock) access_.unlock(access_.user, access_.queue);
  return work.result;
}

Result<vk::Ticket> HostQueue::submit(std::span<const VkCommandBuffer> command_buffers) {
  if (device_.lost()) return make_error(ErrorCode::device_lost, "submit: the device was lost");
  const VkSemaphore timeline = in_flight_.timeline();
  VkFence fence = VK_NULL_HANDLE;
  if (!timeline && !access_.submit_without_fence) {
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
  if (by_frames()) in_flight_.submitted_by_frame(ticket);
  else in_flight_.submitted(ticket, fence);
  return ticket;
}

}  // namespace imprint::bridge

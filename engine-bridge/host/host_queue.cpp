#include "engine-bridge/host/host_queue.h"

#include <algorithm>

#include "engine-bridge/host/lost_device.h"

namespace imprint::bridge {

// The caller holds the queue: labels need that too.
VkResult HostQueue::submit_directly(VkQueue queue, Submission& submission) const {
  const vk::Functions& f = device_.functions();
  if (f.vkQueueBeginDebugUtilsLabelEXT) {
    VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    label.pLabelName = submission.label();
    f.vkQueueBeginDebugUtilsLabelEXT(queue, &label);
  }
  const VkResult result = f.vkQueueSubmit2
                              ? f.vkQueueSubmit2(queue, 1, &submission.info2(), submission.fence())
                              : f.vkQueueSubmit(queue, 1, &submission.info(), submission.fence());
  if (f.vkQueueEndDebugUtilsLabelEXT && result != VK_ERROR_DEVICE_LOST) f.vkQueueEndDebugUtilsLabelEXT(queue);
  return result;
}

VkResult HostQueue::submit_as_allowed(Submission& submission) {
  if (access_.submit)
    return access_.submit(access_.user, access_.queue, 1, &submission.info(), submission.fence());
  if (access_.run) {
    struct Work {
      HostQueue& self;
      Submission& submission;
      VkResult result;
      bool ran;
    } work{*this, submission, VK_ERROR_UNKNOWN, false};
    access_.run(
        access_.user,
        [](void* data, VkQueue queue) {
          auto& wanted = *static_cast<Work*>(data);
          wanted.result = wanted.self.submit_directly(queue, wanted.submission);
          wanted.ran = true;
        },
        &work);
    ran_ = work.ran;
    return work.result;
  }
  if (access_.lock) access_.lock(access_.user, access_.queue);
  const VkResult result = submit_directly(access_.queue, submission);
  if (access_.unlock) access_.unlock(access_.user, access_.queue);
  return result;
}

Result<> HostQueue::start() {
  if (!access_.exclusive) return {};
  IMPRINT_ASSIGN(thread_, SubmitThread::start(device_, in_flight_, [this](Submission& submission) {
                   ++device_.counters().submits;
                   return submit_as_allowed(submission);
                 }));
  return {};
}

Result<vk::Ticket> HostQueue::submit(std::span<const VkCommandBuffer> command_buffers,
                                     std::span<const HostSemaphore> waits,
                                     std::span<const HostSemaphore> completions, const char* label) {
  if (device_.lost()) return lost_device_error("submit");
  if (thread_) IMPRINT_CHECK(thread_->check_accepting());
  VkFence fence = VK_NULL_HANDLE;
  if (!in_flight_.timeline() && !access_.submit_without_fence) {
    IMPRINT_ASSIGN(fence, in_flight_.take_fence());
  }
  if (thread_) return post(command_buffers, waits, completions, fence, label);
  next_.fill(device_.completion().upcoming(), in_flight_.timeline(), fence, command_buffers, waits,
             completions, label);
  const VkResult result = submit_as_allowed(next_);
  ++device_.counters().submits;
  if (result != VK_SUCCESS) {
    if (fence) in_flight_.give_back(fence);
    if (!ran_)
      return make_error(ErrorCode::wrong_state,
                        "run_on_queue: it returned without calling work(data, queue). Call work first.");
    return vk::vulkan_error(device_, "vkQueueSubmit", result);
  }
  const vk::Ticket ticket = device_.completion().next();
  if (completes_by_frames())
    in_flight_.submitted_by_frame(ticket);
  else
    in_flight_.submitted(ticket, fence);
  return ticket;
}

Result<vk::Ticket> HostQueue::post(std::span<const VkCommandBuffer> command_buffers,
                                   std::span<const HostSemaphore> waits,
                                   std::span<const HostSemaphore> completions, VkFence fence,
                                   const char* label) {
  const vk::Ticket ticket = device_.completion().next();
  thread_->next().fill(ticket, in_flight_.timeline(), fence, command_buffers, waits, completions, label);
  in_flight_.posted(ticket, fence);
  thread_->post();
  // The host may submit a wait for a binary semaphore only after its signal, so the signal must be submitted
  // before this returns.
  if (std::ranges::any_of(completions, [](const HostSemaphore& semaphore) { return !semaphore.timeline; }))
    thread_->wait_until_submitted();
  return ticket;
}

}  // namespace imprint::bridge

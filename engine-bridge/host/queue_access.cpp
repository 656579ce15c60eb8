#include "engine-bridge/host/queue_access.h"

#include <algorithm>
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
  if (access.exclusive && !access.lock && !access.unlock)
    way(true, "exclusive");  // a lock may be held besides
  if (!access.queue) {
    if (ways == 0) return {};
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a way to submit is given, but queue is null: give the VkQueue, or leave "
                      "all of it empty to record only");
  }
  if (!access.lock != !access.unlock) {
    return make_error(ErrorCode::invalid_argument,
                      std::string("queue access: lock and unlock belong together, but ") +
                          (access.lock ? "unlock" : "lock") + " is null");
  }
  if (ways == 0) {
    return make_error(ErrorCode::invalid_argument,
                      "queue access: a queue is given without a way to share it: set lock and unlock, or "
                      "submit, or run_on_queue, or single_thread "
                      "(when the host uses this queue only on the thread that calls the frame functions), or "
                      "internally_synchronized, or exclusive (when the "
                      "host uses it for nothing)");
  }
  if (ways > 1)
    return make_error(ErrorCode::invalid_argument,
                      "queue access: exactly one way to share the queue is needed, found " + found);
  if (access.exclusive && access.submit_without_fence) {
    return make_error(ErrorCode::invalid_argument,
                      "queue access: submit_without_fence belongs to submit, not to an exclusive queue");
  }
  if (access.submit_without_fence && !access.submit) {
    return make_error(
        ErrorCode::invalid_argument,
        "queue access: submit_without_fence is set, but the way is " + found + ": it belongs to submit");
  }
  return {};
}

// With the queue in hand, which its labels need too.
VkResult HostQueue::submit_ourselves(VkQueue queue, Submission& submission) const {
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

VkResult HostQueue::submit_to_host(Submission& submission) {
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
          auto& asked = *static_cast<Work*>(data);
          asked.result = asked.self.submit_ourselves(queue, asked.submission);
          asked.ran = true;
        },
        &work);
    ran_ = work.ran;
    return work.result;
  }
  if (access_.lock) access_.lock(access_.user, access_.queue);
  const VkResult result = submit_ourselves(access_.queue, submission);
  if (access_.unlock) access_.unlock(access_.user, access_.queue);
  return result;
}

Status HostQueue::start() {
  if (!access_.exclusive) return {};
  IMPRINT_ASSIGN(thread_, SubmitThread::start(device_, in_flight_, [this](Submission& submission) {
                   ++device_.counters().submits;
                   return submit_to_host(submission);
                 }));
  return {};
}

Result<vk::Ticket> HostQueue::submit(std::span<const VkCommandBuffer> command_buffers,
                                     std::span<const HostSemaphore> waits,
                                     std::span<const HostSemaphore> signals, const char* label) {
  if (device_.lost()) return make_error(ErrorCode::device_lost, "submit: the device was lost");
  if (thread_) IMPRINT_CHECK(thread_->accepts());
  VkFence fence = VK_NULL_HANDLE;
  if (!in_flight_.timeline() && !access_.submit_without_fence) {
    IMPRINT_ASSIGN(fence, in_flight_.take_fence());
  }
  if (thread_) return post(command_buffers, waits, signals, fence, label);
  next_.fill(device_.completion().upcoming(), in_flight_.timeline(), fence, command_buffers, waits, signals,
             label);
  const VkResult result = submit_to_host(next_);
  ++device_.counters().submits;
  if (result != VK_SUCCESS) {
    if (fence) in_flight_.give_back(fence);
    if (!ran_)
      return make_error(ErrorCode::wrong_state,
                        "submit: run_on_queue returned, and had not called work(data, queue); it is to be "
                        "called before that");
    return vk::vulkan_error(device_, "vkQueueSubmit", result);
  }
  const vk::Ticket ticket = device_.completion().next();
  if (by_frames())
    in_flight_.submitted_by_frame(ticket);
  else
    in_flight_.submitted(ticket, fence);
  return ticket;
}

Result<vk::Ticket> HostQueue::post(std::span<const VkCommandBuffer> command_buffers,
                                   std::span<const HostSemaphore> waits,
                                   std::span<const HostSemaphore> signals, VkFence fence, const char* label) {
  const vk::Ticket ticket = device_.completion().next();
  thread_->next().fill(ticket, in_flight_.timeline(), fence, command_buffers, waits, signals, label);
  in_flight_.posted(ticket, fence);
  thread_->post();
  // Who waits for a binary semaphore may only be submitted behind who signals it, and the host goes on when
  // this returns.
  if (std::ranges::any_of(signals, [](const HostSemaphore& semaphore) { return !semaphore.timeline; }))
    thread_->settle();
  return ticket;
}

}  // namespace imprint::bridge

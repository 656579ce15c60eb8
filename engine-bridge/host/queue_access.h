#pragma once
// The host's queue, used the way the host allows. Nothing else of ours calls vkQueueSubmit.

#include <vulkan/vulkan_core.h>

#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "compute/vk/queue.h"
#include "engine-bridge/context.h"
#include "engine-bridge/host/in_flight.h"
#include "engine-bridge/host/submission.h"
#include "engine-bridge/host/submit_thread.h"

namespace imprint::bridge {

// Errors: invalid_argument when a queue is given with none or several ways to submit, or half of a lock (says
// which).
Status check_queue_access(const QueueAccess& access);

// vkQueueSubmit2 where synchronization2 is declared and the call is ours; vkQueueSubmit, and for a host's own
// submit always VkSubmitInfo, else. In captures each submission carries its label. Allocates nothing. On an
// exclusive queue a thread of its own does that, in order; an error is then of what was submitted before, and
// nothing of this one is lost by it.
class HostQueue final : public vk::Queue {
 public:
  // `access` has a queue and passed check_queue_access. Device and order outlive the queue.
  HostQueue(vk::Device& device, InFlight& in_flight, const QueueAccess& access)
      : device_(device), in_flight_(in_flight), access_(access) {}

  Status start();  // what an exclusive queue needs. Errors: out_of_host_memory

  std::uint32_t family() const override { return access_.family; }
  // Nothing but the host's frame numbers tells what is complete.
  bool by_frames() const { return access_.submit_without_fence && !in_flight_.timeline(); }
  Result<vk::Ticket> submit(std::span<const VkCommandBuffer> command_buffers) override {
    return submit(command_buffers, {}, {});
  }
  // And waits for the host's semaphores before, and signals behind.
  Result<vk::Ticket> submit(std::span<const VkCommandBuffer> command_buffers,
                            std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals,
                            const char* label = "imprint");
  void stand_still() {
    if (thread_) thread_->stand_still();
  }  // of a lost device: nothing is submitted any more
  Status wait(vk::Ticket ticket, std::uint64_t timeout_ns) override {
    return in_flight_.wait(ticket, timeout_ns);
  }

 private:
  VkResult submit_to_host(Submission& submission);
  VkResult submit_ourselves(VkQueue queue, Submission& submission) const;
  Result<vk::Ticket> post(std::span<const VkCommandBuffer> command_buffers,
                          std::span<const HostSemaphore> waits, std::span<const HostSemaphore> signals,
                          VkFence fence, const char* label);

  vk::Device& device_;
  InFlight& in_flight_;
  QueueAccess access_;
  Submission next_;
  bool ran_ = true;                       // the host's run_on_queue called what it was given
  std::unique_ptr<SubmitThread> thread_;  // of an exclusive queue
};

}  // namespace imprint::bridge

#pragma once
// Submission to the host's queue in the way that the host allows. Nothing else in Imprint calls
// vkQueueSubmit.

#include <vulkan/vulkan_core.h>

#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "compute/vk/queue.h"
#include "engine-bridge/host/host_semaphore.h"
#include "engine-bridge/host/in_flight.h"
#include "engine-bridge/host/queue_access.h"
#include "engine-bridge/host/submission.h"
#include "engine-bridge/host/submit_thread.h"

namespace imprint::bridge {

// Calls vkQueueSubmit2 where synchronization2 is declared, else vkQueueSubmit. A host's own submit callback
// always gets VkSubmitInfo. Allocates nothing. On an exclusive queue the submit thread calls it; an error
// then belongs to an earlier submission, and the new one is not lost.
class HostQueue final : public vk::Queue {
 public:
  // `access` has a queue and passed check_queue_access. `device` and `in_flight` outlive the queue.
  HostQueue(vk::Device& device, InFlight& in_flight, const QueueAccess& access)
      : device_(device), in_flight_(in_flight), access_(access) {}

  // Starts the submit thread of an exclusive queue. Errors: out_of_host_memory.
  Result<> start();

  std::uint32_t family() const override { return access_.family; }
  // Only the host's safe frames tell what is complete.
  bool completes_by_frames() const { return access_.submit_without_fence && !in_flight_.timeline(); }
  Result<vk::Ticket> submit(std::span<const VkCommandBuffer> command_buffers) override {
    return submit(command_buffers, {}, {});
  }
  // Waits for the host's semaphores first and signals the host's semaphores last. `label` names the
  // submission in captures.
  Result<vk::Ticket> submit(std::span<const VkCommandBuffer> command_buffers,
                            std::span<const HostSemaphore> waits, std::span<const HostSemaphore> completions,
                            const char* label = "imprint");
  // See SubmitThread. Does nothing on the host's own queue.
  void stop_submitting() {
    if (thread_) thread_->stop_submitting();
  }
  Result<> wait(vk::Ticket ticket, std::uint64_t timeout_ns) override {
    return in_flight_.wait(ticket, timeout_ns);
  }

 private:
  VkResult submit_as_allowed(Submission& submission);
  VkResult submit_directly(VkQueue queue, Submission& submission) const;
  Result<vk::Ticket> post(std::span<const VkCommandBuffer> command_buffers,
                          std::span<const HostSemaphore> waits, std::span<const HostSemaphore> completions,
                          VkFence fence, const char* label);

  vk::Device& device_;
  InFlight& in_flight_;
  QueueAccess access_;
  Submission next_;
  bool ran_ = true;                       // the host's run_on_queue called what it was given
  std::unique_ptr<SubmitThread> thread_;  // null: the queue is the host's
};

}  // namespace imprint::bridge

#pragma once
// A queue to submit to, and the order in which submitted work completes. Only the engine bridge, which
// implements this interface, knows the queue's owner and its locking.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>

#include "compute/base/result.h"

namespace imprint::vk {

// A point in the order of work of one Device: everything recorded or submitted before it is done once the
// ticket is complete. 0 = nothing. Tickets of one device rise; completing one completes all smaller ones.
struct Ticket {
  std::uint64_t value = 0;
  auto operator<=>(const Ticket&) const = default;
};

// Submits command buffers in order. Not synchronised: one thread at a time (the bridge's frame thread).
class Queue {
 public:
  virtual ~Queue() = default;

  virtual std::uint32_t family() const = 0;

  // Submits in one batch (one vkQueueSubmit). The command buffers must stay alive until the ticket completes.
  // Errors: device_lost, out_of_device_memory, out_of_host_memory.
  virtual Result<Ticket> submit(std::span<const VkCommandBuffer> command_buffers) = 0;

  // Blocks until the ticket is complete or the time is over (not_ready). Never called on a frame thread;
  // counted in Counters::waits.
  virtual Result<> wait(Ticket ticket, std::uint64_t timeout_ns) = 0;
};

}  // namespace imprint::vk

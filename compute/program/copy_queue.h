#pragma once
// Copies that run beside a main queue's work, on a queue of a family for transfers. The owner of the queues
// implements it. One thread at a time.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>

#include "compute/base/result.h"
#include "compute/vk/queue.h"

namespace imprint::program {

class CopyQueue {
 public:
  enum class Direction : std::uint8_t { to_host, to_device };
  virtual ~CopyQueue() = default;

  // Commands that may be submitted again once they are complete.
  virtual Result<VkCommandBuffer> record(const std::function<void(VkCommandBuffer)>& body) = 0;
  virtual void free(VkCommandBuffer commands) = 0;  // at once: call when the GPU is done with it

  // Runs in the order of submissions of one direction. Returns the direction's next point, which rises.
  virtual Result<std::uint64_t> submit(Direction direction, VkCommandBuffer commands) = 0;
  virtual Result<bool> is_complete(Direction direction, std::uint64_t point) = 0;
  virtual Result<> wait(Direction direction, std::uint64_t point, std::uint64_t timeout_ns) = 0;
  // On the main queue, after the newest copy to the device.
  virtual Result<vk::Ticket> submit_after_copies(VkCommandBuffer commands) = 0;
};

}  // namespace imprint::program

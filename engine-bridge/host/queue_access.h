#pragma once
// How the host lets Imprint submit to its queue (R9, R10).

#include <vulkan/vulkan_core.h>

#include <cstdint>

#include "compute/base/result.h"

namespace imprint::bridge {

// Without a queue the context only records. With one, the host sets exactly one of: lock and unlock, submit,
// run, single_thread, internally_synchronized, exclusive. Only exclusive may be combined with lock and
// unlock.
struct QueueAccess {
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  void (*lock)(void* user, VkQueue queue) = nullptr;
  void (*unlock)(void* user, VkQueue queue) = nullptr;
  VkResult (*submit)(void* user, VkQueue queue, std::uint32_t submit_count, const VkSubmitInfo* submits,
                     VkFence fence) = nullptr;
  // Calls work(data, queue) where the host may submit, and returns after that.
  void (*run)(void* user, void (*work)(void* data, VkQueue queue), void* data) = nullptr;
  bool single_thread = false;
  // Set when the driver (VK_KHR_internally_synchronized_queues) or a layer of the host locks the queue.
  bool internally_synchronized = false;
  // The queue is Imprint's alone. Imprint submits to it from its own thread, and the budget counts this
  // queue's time instead of the host's frame time. Only SubmitInfo's semaphores order it with the host's
  // queues, so recording is not possible.
  bool exclusive = false;
  // The host's submit ignores the fence. Without timeline semaphores, a submission is then complete when the
  // host reports its frame as safe, as with recording.
  bool submit_without_fence = false;
  void* user = nullptr;
};

// Errors: invalid_argument (a queue with no way or several ways to submit, half of a lock, a way without a
// queue).
Result<> check_queue_access(const QueueAccess& access);

}  // namespace imprint::bridge

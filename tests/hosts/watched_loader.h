#pragma once
// The vkGetInstanceProcAddr that the host passes to Imprint, which counts forbidden calls: getting queues,
// waiting for an idle device or queue, and creating timeline semaphores where they are not enabled.

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace imprint::hosts {

struct GuestCalls {
  std::uint64_t idle_waits = 0;   // vkDeviceWaitIdle, vkQueueWaitIdle
  std::uint64_t queues = 0;       // vkGetDeviceQueue, vkGetDeviceQueue2
  std::uint64_t timelines = 0;    // vkCreateSemaphore of timeline type
  std::uint64_t submissions = 0;  // vkQueueSubmit, vkQueueSubmit2
};

// Starts at zero. One host at a time per process: Vulkan's functions have no user pointer.
PFN_vkGetInstanceProcAddr watch(PFN_vkGetInstanceProcAddr host_loader);
GuestCalls guest_calls();

}  // namespace imprint::hosts

#pragma once
// The host's vkGetInstanceProcAddr as given to the guest, with a look at what the guest does with it: a guest
// must not ask for the host's queues, nor wait for the device or a queue to go idle, nor make timeline
// semaphores where they were not enabled.

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

// Counts from nothing. One host at a time in a process: Vulkan's loader functions carry no user pointer.
PFN_vkGetInstanceProcAddr watch(PFN_vkGetInstanceProcAddr host_loader);
GuestCalls guest_calls();

}  // namespace imprint::hosts

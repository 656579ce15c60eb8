#pragma once
// A semaphore that the host and Imprint both use.

#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace imprint::bridge {

struct HostSemaphore {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  bool timeline = false;
  std::uint64_t value = 0;  // timeline semaphores only
};

}  // namespace imprint::bridge

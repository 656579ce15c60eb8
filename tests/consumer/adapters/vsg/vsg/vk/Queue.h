#pragma once
// As much of vsg::Queue as samples/adapters/vsg.h uses, for compiling it: names and types, no more.

#include <vulkan/vulkan.h>

#include <cstdint>
#include <vector>

namespace vsg {

class Fence;

class Queue {
 public:
  VkQueue vk() const { return queue; }
  std::uint32_t queueFamilyIndex() const { return family; }
  VkResult submit(const std::vector<VkSubmitInfo>& infos, Fence* fence = nullptr) {
    submitted += infos.size();
    return fence ? VK_ERROR_UNKNOWN : VK_SUCCESS;
  }
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  std::size_t submitted = 0;
};

}  // namespace vsg

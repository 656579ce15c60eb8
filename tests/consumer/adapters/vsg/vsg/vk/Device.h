#pragma once
// The part of VulkanSceneGraph that samples/adapters/vsg.h compiles against: names and types only.

#include <vulkan/vulkan.h>

#include <cstdint>
#include <vector>

namespace vsg {

using Names = std::vector<const char*>;

class AllocationCallbacks : public VkAllocationCallbacks {};

class Instance {
 public:
  const std::uint32_t apiVersion = VK_API_VERSION_1_1;
  VkInstance vk() const { return instance; }
  VkInstance instance = VK_NULL_HANDLE;
};

class PhysicalDevice {
 public:
  VkPhysicalDevice vk() const { return device; }
  VkPhysicalDevice device = VK_NULL_HANDLE;
};

class Device {
 public:
  VkDevice vk() const { return device; }
  const Instance* getInstance() const { return instance; }
  const PhysicalDevice* getPhysicalDevice() const { return physical_device; }
  const AllocationCallbacks* getAllocationCallbacks() const { return allocation; }
  Names enabledExtensions;
  VkDevice device = VK_NULL_HANDLE;
  const Instance* instance = nullptr;
  const PhysicalDevice* physical_device = nullptr;
  const AllocationCallbacks* allocation = nullptr;
};

}  // namespace vsg

#pragma once
// The part of Unreal's interface that samples/adapters/unreal.h compiles against: names and types only.

#include <vulkan/vulkan.h>

#include <cstdint>
#include <string>
#include <vector>

struct FAnsiString {
  std::string text;
  const char* operator*() const { return text.c_str(); }
};

template <class T>
struct TArray : std::vector<T> {};

class IVulkanDynamicRHI {
 public:
  virtual ~IVulkanDynamicRHI() = default;
  virtual std::uint32_t RHIGetVulkanVersion() const = 0;
  virtual VkInstance RHIGetVkInstance() const = 0;
  virtual VkPhysicalDevice RHIGetVkPhysicalDevice() const = 0;
  virtual VkDevice RHIGetVkDevice() const = 0;
  virtual const VkAllocationCallbacks* RHIGetVkAllocationCallbacks() = 0;
  virtual std::uint32_t RHIGetGraphicsQueueIndex() const = 0;
  virtual std::uint32_t RHIGetGraphicsQueueFamilyIndex() const = 0;
  virtual void* RHIGetVkInstanceProcAddr(const char* name) const = 0;
  virtual TArray<FAnsiString> RHIGetLoadedDeviceExtensions() const = 0;
};

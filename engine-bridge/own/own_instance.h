#pragma once
// A Vulkan instance of Imprint's own, on request with the validation layer.

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compute/base/log.h"
#include "compute/base/result.h"

#define IMPRINT_OWN_INSTANCE_FUNCTIONS(X)     \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

namespace imprint::bridge {

struct InstanceOptions {
  bool validation = false;
  bool optional_extensions = true;
  std::uint32_t api_version = 0;  // 0 = the loader's
  LogSink log;
};

class OwnInstance {
 public:
  static Result<std::unique_ptr<OwnInstance>> create(const InstanceOptions& options);
  ~OwnInstance();
  OwnInstance(const OwnInstance&) = delete;
  OwnInstance& operator=(const OwnInstance&) = delete;

  VkInstance handle() const { return instance_; }
  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return get_instance_proc_addr_; }
  std::uint32_t api_version() const { return api_version_; }
  const std::vector<const char*>& extensions() const { return extensions_; }
  // Whether a feature of that Vulkan version may be enabled: an older validation layer reports it as an
  // error.
  bool may_enable_since(std::uint32_t version) const { return validated_as_ >= version; }
  Result<std::vector<VkPhysicalDevice>> physical_devices() const;

  std::uint64_t validation_messages() const { return messages_; }
  std::string first_validation_message() const;

#define X(name) PFN_##name name = nullptr;
  IMPRINT_OWN_INSTANCE_FUNCTIONS(X)
#undef X

 private:
  OwnInstance() = default;
  Result<> load_functions();
  Result<> create_messenger();
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* user);

  PFN_vkGetInstanceProcAddr get_instance_proc_addr_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::uint32_t api_version_ = 0;
  std::uint32_t validated_as_ = ~0u;     // Vulkan version of the validation layer, when it is on
  std::vector<const char*> extensions_;  // literals
  LogSink log_;
  std::atomic<std::uint64_t> messages_{0};
  mutable std::mutex mutex_;
  std::string first_message_;
};

}  // namespace imprint::bridge

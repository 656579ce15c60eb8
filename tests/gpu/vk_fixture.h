#pragma once
// A small host for the tests of compute/vk: an instance with the validation layer, and devices as a host
// would create them.

#include <vulkan/vulkan_core.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compute/vk/device.h"
#include "compute/vk/queue.h"

namespace imprint::vk::test {

// The system's loader and one instance. Validation (with synchronisation checks) is on if the layer is
// installed. messages() collects warnings and errors of the layer and the driver's loader.
class Instance {
 public:
  // The Result's message names what the machine lacks.
  static Result<std::unique_ptr<Instance>> create(std::uint32_t api_version = VK_API_VERSION_1_3);
  ~Instance();
  Instance(const Instance&) = delete;

  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return get_instance_proc_addr_; }
  VkInstance handle() const { return handle_; }
  std::uint32_t api_version() const { return api_version_; }
  VkPhysicalDevice physical_device() const {
    return physical_device_;
  }  // the first, or the one whose name contains IMPRINT_TEST_DEVICE
  std::span<const char* const> extensions() const { return extensions_; }
  bool validated() const { return validated_; }
  std::vector<std::string> messages() const;

  template <class T>
  T function(const char* name) const {
    return reinterpret_cast<T>(get_instance_proc_addr_(handle_, name));
  }

 private:
  Instance() = default;
  static VKAPI_ATTR VkBool32 VKAPI_CALL note(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                             VkDebugUtilsMessageTypeFlagsEXT types,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);

  void* library_ = nullptr;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr_ = nullptr;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  std::uint32_t api_version_ = 0;
  std::vector<const char*> extensions_;
  bool validated_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

// A VkDevice with one compute queue and exactly the requested features and extensions.
class HostDevice {
 public:
  static Result<std::unique_ptr<HostDevice>> create(const Instance& instance,
                                                    const void* features_chain = nullptr,
                                                    std::vector<const char*> extensions = {});
  ~HostDevice();
  HostDevice(const HostDevice&) = delete;

  // The arguments of adopt for this device: everything that it was created with.
  DeviceDescription description() const;
  VkQueue queue() const { return queue_; }

 private:
  explicit HostDevice(const Instance& instance) : instance_(instance) {}
  const Instance& instance_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  std::vector<const char*> extensions_;
};

// Binds whole pool blocks and runs one kernel, with the barrier that lets the host read afterwards. Uploads
// `table` first. Waits.
Result<> run(Device& device, VkQueue queue, const Kernel& kernel, std::span<const Allocation> buffers,
             std::span<const std::uint32_t> table, std::uint32_t groups);

}  // namespace imprint::vk::test

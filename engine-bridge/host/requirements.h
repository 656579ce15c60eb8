#pragma once
// For a host that has not created its device yet: the optional features that Imprint would use, what each is
// worth, and a VkDeviceCreateInfo that enables them. Imprint also adopts a device without any of them.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// The device that the host is going to create.
struct DevicePlan {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;  // VkApplicationInfo::apiVersion
};

struct Wish {
  std::string feature;    // "timelineSemaphore"; empty: enable the extension alone
  std::string extension;  // to enable with it; empty: core in the declared version
  std::string cost;       // what is lost without it
};

struct Requirements {
  std::vector<Wish> wishes;  // all optional, and supported by the physical device
  // Compute families without graphics: on their queues learning runs beside rendering. Optional. `priority`:
  // for vkCreateDevice, lower than that of the host's queues.
  struct Family {
    std::uint32_t index = 0, queue_count = 0;
    float priority = 0;
  };
  std::vector<Family> extra_queues;
};

// Errors: invalid_argument (names the missing field), unsupported (below Vulkan 1.1: names the field to
// raise; no compute family).
Result<Requirements> query_requirements(const DevicePlan& plan);

// The host's create info with the wishes added. Borrows the host's structs, which must outlive it unchanged;
// copies those that change.
class MergedDevice {
 public:
  // Takes any chain that vkCreateDevice takes. Errors: those of query_requirements; invalid_argument (a chain
  // that vkCreateDevice would not take).
  static Result<std::unique_ptr<MergedDevice>> make(const DevicePlan& plan, const VkDeviceCreateInfo& host);
  virtual ~MergedDevice() = default;

  virtual const VkDeviceCreateInfo& create_info() const = 0;  // for vkCreateDevice
  virtual std::span<const char* const> extensions() const = 0;
  // Names of features that stay off, separated by spaces: they are off in the host's own struct, which comes
  // after one of unknown size and so cannot be copied.
  virtual const std::string& left_off() const = 0;
};

}  // namespace imprint::bridge

#pragma once
// Before a host makes its device: what Imprint would use of it, what is lost without, and a
// VkDeviceCreateInfo that has it. Nothing of this is needed; a device without any of it is adopted too.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// The device that is to be.
struct DevicePlan {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;  // VkApplicationInfo::apiVersion
};

struct Wish {
  std::string feature;    // "timelineSemaphore"; empty: the extension is all there is to enable
  std::string extension;  // to enable with it; empty: part of the declared version
  std::string cost;       // what is lost without
};

struct Requirements {
  std::vector<Wish> wishes;  // all optional; only what the physical device has
  // Families that compute beside graphics, for learning that does not wait behind the picture: no need. How
  // many queues there are, and the priority to make one with: lower than any of the host's.
  struct Family {
    std::uint32_t index = 0, queue_count = 0;
    float priority = 0;
  };
  std::vector<Family> extra_queues;
};

// Errors: invalid_argument (which field is missing), unsupported (below 1.1: names the field to raise; no
// family computes).
Result<Requirements> query_requirements(const DevicePlan& plan);

// A create info with the wishes in it. Borrows the host's own, which must outlive it and stay as it is; what
// had to change is a copy.
class MergedDevice {
 public:
  // Errors: those of query_requirements; unsupported (a struct of an unknown type stands in the chain before
  // one that has to change: names it).
  static Result<std::unique_ptr<MergedDevice>> make(const DevicePlan& plan, const VkDeviceCreateInfo& host);
  virtual ~MergedDevice() = default;

  virtual const VkDeviceCreateInfo& create_info() const = 0;    // for vkCreateDevice
  virtual std::span<const char* const> extensions() const = 0;  // these two for DeviceDescription
  virtual const VkPhysicalDeviceFeatures2& features() const = 0;
};

}  // namespace imprint::bridge

#pragma once
// Chooses a physical device and queue family, and creates a VkDevice with every optional feature that Imprint
// uses.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/capabilities/feature_structs.h"
#include "compute/vk/device.h"
#include "engine-bridge/own/own_instance.h"

namespace imprint::bridge {

// A physical device, usable or not.
struct Candidate {
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  std::uint32_t queue_family = 0;
  std::uint32_t compute_queue_count = 0;                // over all families; 0 = not usable
  std::uint32_t copy_family = 0, copy_queue_count = 0;  // of a family for transfers alone; 0: there is none
  bool usable() const { return compute_queue_count > 0 && properties.apiVersion >= VK_API_VERSION_1_1; }
};
Result<std::vector<Candidate>> candidates(const OwnInstance& instance);

// Index of the usable candidate with this VkPhysicalDeviceIDProperties::deviceUUID; list.size(): none.
std::size_t find(const OwnInstance& instance, const std::vector<Candidate>& list,
                 const std::array<std::uint8_t, VK_UUID_SIZE>& device_uuid);

// `wish`: an index, part of the name, or empty for the best. Returns the candidate's index. Errors: not_found
// (lists the devices).
Result<std::size_t> choose(const std::vector<Candidate>& list, std::string_view wish);

// Extensions and features to enable: those that Imprint uses and the physical device has.
class DeviceSetup {
 public:
  // extensions: further ones, enabled where the device has them. They outlive this.
  static Result<std::unique_ptr<DeviceSetup>> make(const OwnInstance& instance,
                                                   VkPhysicalDevice physical_device, bool optional_features,
                                                   std::span<const char* const> extensions = {});
  const std::vector<const char*>& extensions() const { return extensions_; }
  const VkPhysicalDeviceFeatures2* features() const { return &features_; }

  // As a host would declare it; the VkDevice is left null.
  vk::DeviceDescription describe(const OwnInstance& instance, const Candidate& candidate) const;

 private:
  DeviceSetup() = default;
  std::vector<const char*> extensions_;  // literals
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  std::unique_ptr<vk::FeatureStructs> chain_;
};

class OwnDevice {
 public:
  // copies: with queues of the candidate's copy_family.
  static Result<std::unique_ptr<OwnDevice>> create(const OwnInstance& instance, const Candidate& candidate,
                                                   const DeviceSetup& setup, bool copies = false);
  ~OwnDevice();
  OwnDevice(const OwnDevice&) = delete;
  OwnDevice& operator=(const OwnDevice&) = delete;
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  // For copies to the host and to the device. The main queue where there are no others.
  const std::array<VkQueue, 2>& copy_queues() const { return copy_queues_; }

 private:
  OwnDevice() = default;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::array<VkQueue, 2> copy_queues_{};
  PFN_vkDestroyDevice destroy_ = nullptr;
};

}  // namespace imprint::bridge

#ifndef IMPRINT_SAMPLES_ADAPTERS_ENABLED_H_
#define IMPRINT_SAMPLES_ADAPTERS_ENABLED_H_
// The features and extensions enabled on an engine's device that the engine's interface does not report.
// Vulkan cannot be asked for them, and Imprint uses only those declared. Declaring fewer than were enabled is
// correct but slower. Declaring more is undefined behaviour.

#include <imprint/imprint_vulkan.h>

#include <cstdint>
#include <span>

namespace imprint::adapters {

struct Enabled {
  std::uint32_t api_version = (1u << 22) | (1u << 12);  // Vulkan 1.1, the minimum
  std::span<const char* const> instance_extensions;
  std::span<const char* const> device_extensions;
  const void* features = nullptr;          // VkDeviceCreateInfo::pNext: its whole chain, in any order
  const void* enabled_features = nullptr;  // VkDeviceCreateInfo::pEnabledFeatures
};

inline imp_vk_device_info begin_description(const Enabled& enabled) {
  imp_vk_device_info info = imp_vk_device_info_init();
  info.api_version = enabled.api_version;
  info.instance_extension_count = static_cast<std::uint32_t>(enabled.instance_extensions.size());
  info.instance_extensions = enabled.instance_extensions.data();
  info.device_extension_count = static_cast<std::uint32_t>(enabled.device_extensions.size());
  info.device_extensions = enabled.device_extensions.data();
  info.features = enabled.features;
  info.enabled_features = enabled.enabled_features;
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_ENABLED_H_

#include "compute/vk/capabilities/read_capabilities.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "compute/base/text.h"
#include "compute/vk/capabilities/cooperative_matrices.h"
#include "compute/vk/capabilities/optional_features.h"
#include "compute/vk/vulkan_error.h"

namespace imprint::vk {
namespace {

Result<std::unordered_set<std::string>> names(std::span<const char* const> list, const char* field) {
  std::unordered_set<std::string> set;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i])
      return make_error(ErrorCode::invalid_argument, text(field, "[", i, "]: found null, expected a name"));
    set.insert(list[i]);
  }
  return set;
}

Result<std::unordered_set<std::string>> device_extensions(VkPhysicalDevice physical_device,
                                                          const Functions& functions) {
  std::vector<VkExtensionProperties> list;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // the list can grow between the two calls
    std::uint32_t count = 0;
    result = functions.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) break;
    list.resize(count);
    result = functions.vkEnumerateDeviceExtensionProperties(physical_device, nullptr, &count, list.data());
    list.resize(std::min<std::size_t>(count, list.size()));
  }
  if (result != VK_SUCCESS) return result_error("vkEnumerateDeviceExtensionProperties", result);
  std::unordered_set<std::string> set;
  for (const auto& extension : list) set.insert(extension.extensionName);
  return set;
}

// Returns whether an instruction multiplies packed numbers. The feature alone is part of Vulkan 1.3.
bool read_properties(VkPhysicalDevice physical_device, const Functions& functions, const FeatureSource& host,
                     const FeatureSource& device, Capabilities& found) {
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  properties.pNext = &subgroup;
  const bool names_driver = device.has("VK_KHR_driver_properties", VK_API_VERSION_1_2);
  if (names_driver) subgroup.pNext = &driver;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  if (device.has("VK_EXT_subgroup_size_control", VK_API_VERSION_1_3)) {
    sizes.pNext = properties.pNext;
    properties.pNext = &sizes;
  }
  constexpr const char* kFloatControls = "VK_KHR_shader_float_controls";
  VkPhysicalDeviceFloatControlsProperties floats{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  const bool has_float_controls =
      host.has(kFloatControls, VK_API_VERSION_1_2) && device.has(kFloatControls, VK_API_VERSION_1_2);
  if (has_float_controls) {
    floats.pNext = properties.pNext;
    properties.pNext = &floats;
  }
  VkPhysicalDeviceShaderIntegerDotProductProperties dots{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  if (device.has("VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3)) {
    dots.pNext = properties.pNext;
    properties.pNext = &dots;
  }
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties);

  const VkPhysicalDeviceProperties& p = properties.properties;
  found.device_name = p.deviceName;
  found.driver_name = names_driver ? std::string(driver.driverName) + " " + driver.driverInfo
                                   : "driver " + std::to_string(p.driverVersion);
  found.vendor_id = p.vendorID;
  found.device_id = p.deviceID;
  found.driver_version = p.driverVersion;
  std::ranges::copy(p.pipelineCacheUUID, found.pipeline_cache_uuid.begin());
  found.device_type = p.deviceType;
  found.max_storage_buffer_range = p.limits.maxStorageBufferRange;
  found.min_storage_buffer_offset_alignment = p.limits.minStorageBufferOffsetAlignment;
  found.min_uniform_buffer_offset_alignment = p.limits.minUniformBufferOffsetAlignment;
  found.max_push_constant_bytes = p.limits.maxPushConstantsSize;
  found.max_storage_buffers_per_stage =
      std::min(p.limits.maxPerStageDescriptorStorageBuffers, p.limits.maxDescriptorSetStorageBuffers);
  found.max_workgroup_count_x = p.limits.maxComputeWorkGroupCount[0];
  found.max_workgroup_invocations = p.limits.maxComputeWorkGroupInvocations;
  found.max_workgroup_size_x = p.limits.maxComputeWorkGroupSize[0];
  found.max_shared_memory_bytes = p.limits.maxComputeSharedMemorySize;
  found.max_memory_allocation_count = p.limits.maxMemoryAllocationCount;
  found.subgroup_size = subgroup.subgroupSize;
  if (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) {
    found.min_subgroup_size = sizes.minSubgroupSize;
    found.max_subgroup_size = sizes.maxSubgroupSize;
  }
  found.timestamp_period_ns = p.limits.timestampPeriod;
  // Kernels ask for 16 bits alone. Those with a mode for 64 bits would be other kernels.
  const auto is_own = [](VkShaderFloatControlsIndependence independence) {
    return independence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  };
  found.rounds_to_float16 = has_float_controls && floats.shaderRoundingModeRTEFloat16 == VK_TRUE &&
                            floats.shaderDenormPreserveFloat16 == VK_TRUE &&
                            is_own(floats.roundingModeIndependence) &&
                            is_own(floats.denormBehaviorIndependence);
  return dots.integerDotProduct4x8BitPackedSignedAccelerated || p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

// Checks that the queue family exists and computes; reads the length of its timestamps.
Result<> read_queue_family(const DeviceDescription& description, const Functions& functions,
                           Capabilities& found) {
  std::uint32_t count = 0;
  functions.vkGetPhysicalDeviceQueueFamilyProperties(description.physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.vkGetPhysicalDeviceQueueFamilyProperties(description.physical_device, &count, families.data());
  if (description.queue_family >= count) {
    return make_error(ErrorCode::invalid_argument,
                      text("queue.family: found ", description.queue_family, ", expected below ", count,
                           ", the physical device's count. Pass the family that the queue came from."));
  }
  const VkQueueFamilyProperties& properties = families[description.queue_family];
  if (!(properties.queueFlags & VK_QUEUE_COMPUTE_BIT)) {
    return make_error(
        ErrorCode::unsupported,
        text("queue.family: found ", description.queue_family,
             ", which has no compute, expected one with VK_QUEUE_COMPUTE_BIT. Pass another queue."));
  }
  found.timestamp_valid_bits = properties.timestampValidBits;
  return {};
}

Result<> check_version(std::uint32_t version, const char* field, const char* remedy) {
  if (version >= VK_API_VERSION_1_1) return {};
  return make_error(ErrorCode::unsupported,
                    text(field, ": found vulkan ", version_text(version ? version : VK_API_VERSION_1_0),
                         ", expected at least 1.1. ", remedy, "."));
}

}  // namespace

Result<CapabilityReport> read_capabilities(const DeviceDescription& description, const Functions& functions) {
  IMPRINT_CHECK(check_declared_version(description));
  IMPRINT_CHECK(
      check_chain(description.features, description.enabled_features, {"features", "enabled_features"}));

  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  functions.vkGetPhysicalDeviceProperties2(description.physical_device, &properties);
  const std::uint32_t device_version = properties.properties.apiVersion;
  IMPRINT_CHECK(check_version(device_version, "physical device", "Use another device or a newer driver"));

  FeatureSource host{std::min(description.api_version, device_version), {}};
  IMPRINT_ASSIGN(host.extensions, names(description.device_extensions, "device_extensions"));
  IMPRINT_ASSIGN(const auto instance_extensions,
                 names(description.instance_extensions, "instance_extensions"));
  FeatureSource device{device_version, {}};
  IMPRINT_ASSIGN(device.extensions, device_extensions(description.physical_device, functions));

  auto [declared, too_early] = read_chain(description.features, host);
  read_extensions(host, declared);
  const Capabilities supported = supported_features(description.physical_device, functions, device);
  Capabilities usable = supported;
  keep_usable_matrices(description.physical_device, functions, declared, usable);

  CapabilityReport report;
  Capabilities& effective = report.capabilities;
  effective.api_version = host.version;
  const bool has_dots = read_properties(description.physical_device, functions, host, device, effective);
  usable.integer_dot = usable.integer_dot && has_dots;
  IMPRINT_CHECK(read_queue_family(description, functions, effective));
  for (const OptionalFeature& feature : optional_features()) {
    const FeatureState state{declared.*feature.member, too_early.*feature.member, supported.*feature.member,
                             usable.*feature.member};
    effective.*feature.member = state.declared && state.usable;
    if (!(state.declared && state.usable))
      report.missing_features.push_back(missing_feature(feature, state, host));
  }

  if (!effective.subgroup_size_control) effective.min_subgroup_size = effective.max_subgroup_size = 0;

  effective.debug_utils =
      instance_extensions.contains("VK_EXT_debug_utils") && functions.vkSetDebugUtilsObjectNameEXT;
  if (!effective.debug_utils) {
    report.missing_features.push_back(
        {"VK_EXT_debug_utils", "not declared",
         "Imprint's objects and commands have no names in validation messages and captures",
         "enable VK_EXT_debug_utils at vkCreateInstance and list it in instance_extensions",
         RemedyKind::enable_instance_extension, "", "VK_EXT_debug_utils"});
  }
  if (effective.timestamp_valid_bits == 0) {
    report.missing_features.push_back(
        {"timestamps", "not supported by the queue family", "GPU time is estimated instead of measured",
         "give a queue family with timestampValidBits above 0", RemedyKind::other_queue_family});
  }
  return report;
}

Result<> check_declared_version(const DeviceDescription& description) {
  return check_version(description.api_version, "api_version",
                       "Raise VkApplicationInfo::apiVersion to VK_API_VERSION_1_1 or above at "
                       "vkCreateInstance and declare it in api_version");
}

}  // namespace imprint::vk

#include "engine-bridge/host/remedies.h"

#include "compute/vk/capabilities/capabilities.h"

namespace imprint::bridge {
namespace {

using vk::MissingFeature;
using vk::RemedyKind;
using vk::version_text;

// "timelineSemaphore (with VK_KHR_timeline_semaphore below vulkan 1.2)".
std::string what(const MissingFeature& missing) {
  if (missing.feature.empty()) return missing.extension;
  return missing.feature + " (with " + missing.extension +
         (missing.core_since ? " below vulkan " + version_text(missing.core_since) : "") + ")";
}

std::string in_unity(const MissingFeature& missing) {
  const std::string wrap =
      "in a native plugin that is preloaded, IUnityGraphicsVulkanV2::AddInterceptInitialization with a "
      "wrapper of ";
  if (missing.kind == RemedyKind::raise_version)
    return wrap + "vkCreateInstance that raises apiVersion to " + version_text(missing.core_since);
  if (missing.kind == RemedyKind::enable_instance_extension)
    return wrap + "vkCreateInstance that adds " + missing.extension + "; declare it";
  return wrap + "vkCreateDevice that enables " + what(missing) + "; declare the same";
}

std::string in_unreal(const MissingFeature& missing) {
  const std::string before =
      "in a module that is loaded before the RHI (PostConfigInit), IVulkanDynamicRHI::";
  if (missing.kind == RemedyKind::raise_version)
    return "the RHI picks its version (RHIGetVulkanVersion): enable " + missing.extension + " instead, " +
           before + "AddEnabledDeviceExtensionsAndLayers";
  if (missing.kind == RemedyKind::enable_instance_extension)
    return before + "AddEnabledInstanceExtensionsAndLayers with " + missing.extension + "; declare it";
  if (missing.feature.empty())
    return before + "AddEnabledDeviceExtensionsAndLayers with " + missing.extension;
  return before + "AddEnabledDeviceExtensionsAndLayers with an FVulkanRHIExternalDeviceExtensionBase for " +
         missing.extension + " that chains " + missing.feature + "; declare its struct in features";
}

std::string in_godot(const MissingFeature& missing) {
  if (missing.kind == RemedyKind::raise_version)
    return "declare the version that Godot made its instance with";
  if (missing.kind == RemedyKind::enable_instance_extension)
    return "start Godot with --verbose, which enables it; declare it then";
  return "not from a GDExtension, as Godot enables a fixed list; in your own build of the engine add " +
         what(missing) + " in RenderingDeviceDriverVulkan::_initialize_device_extensions";
}

std::string in_vulkan_scene_graph(const MissingFeature& missing) {
  if (missing.kind == RemedyKind::raise_version)
    return "WindowTraits::vulkanVersion = " + version_text(missing.core_since) + " or above";
  if (missing.kind == RemedyKind::enable_instance_extension)
    return "WindowTraits::instanceExtensionNames, or debugUtils = true; declare it";
  const std::string extension = "\"" + missing.extension + "\" in WindowTraits::deviceExtensionNames";
  if (missing.feature.empty()) return extension + "; declare it";
  return missing.feature + " in WindowTraits::deviceFeatures" +
         (missing.core_since ? ", and below vulkan " + version_text(missing.core_since) + " " : ", and ") +
         extension + "; declare the same";
}

}  // namespace

std::array<std::string, kEngineCount> engine_remedies(const MissingFeature& missing) {
  switch (missing.kind) {
    case RemedyKind::none:
    case RemedyKind::declare_less:
    case RemedyKind::other_queue_family:
      return {missing.remedy, missing.remedy, missing.remedy, missing.remedy};
    case RemedyKind::raise_version:
    case RemedyKind::enable_feature:
    case RemedyKind::enable_extension:
    case RemedyKind::enable_instance_extension:
      return {in_unity(missing), in_unreal(missing), in_godot(missing), in_vulkan_scene_graph(missing)};
  }
  return {};
}

}  // namespace imprint::bridge

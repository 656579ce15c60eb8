#include "engine-bridge/host/remedies.h"

#include "compute/vk/capabilities/capabilities.h"

namespace imprint::bridge {
namespace {

using vk::MissingFeature;
using vk::RemedyKind;
using vk::version_text;

// "timelineSemaphore (with VK_KHR_timeline_semaphore below vulkan 1.2)".
std::string what(const MissingFeature& loss) {
  if (loss.feature.empty()) return loss.extension;
  return loss.feature + " (with " + loss.extension +
         (loss.core_since ? " below vulkan " + version_text(loss.core_since) : "") + ")";
}

std::string in_unity(const MissingFeature& loss) {
  const std::string wrap =
      "in a native plugin that is preloaded, IUnityGraphicsVulkanV2::AddInterceptInitialization with a "
      "wrapper of ";
  if (loss.kind == RemedyKind::raise_version)
    return wrap + "vkCreateInstance that raises apiVersion to " + version_text(loss.core_since);
  if (loss.kind == RemedyKind::enable_instance_extension)
    return wrap + "vkCreateInstance that adds " + loss.extension + "; declare it";
  return wrap + "vkCreateDevice that enables " + what(loss) + "; declare the same";
}

std::string in_unreal(const MissingFeature& loss) {
  const std::string before =
      "in a module that is loaded before the RHI (PostConfigInit), IVulkanDynamicRHI::";
  if (loss.kind == RemedyKind::raise_version)
    return "the RHI picks its version (RHIGetVulkanVersion): enable " + loss.extension + " instead, " +
           before + "AddEnabledDeviceExtensionsAndLayers";
  if (loss.kind == RemedyKind::enable_instance_extension)
    return before + "AddEnabledInstanceExtensionsAndLayers with " + loss.extension + "; declare it";
  if (loss.feature.empty()) return before + "AddEnabledDeviceExtensionsAndLayers with " + loss.extension;
  return before + "AddEnabledDeviceExtensionsAndLayers with an FVulkanRHIExternalDeviceExtensionBase for " +
         loss.extension + " that chains " + loss.feature + "; declare its struct in features";
}

std::string in_godot(const MissingFeature& loss) {
  if (loss.kind == RemedyKind::raise_version) return "declare the version that Godot made its instance with";
  if (loss.kind == RemedyKind::enable_instance_extension)
    return "start Godot with --verbose, which enables it; declare it then";
  return "not from a GDExtension, as Godot enables a fixed list; in your own build of the engine add " +
         what(loss) + " in RenderingDeviceDriverVulkan::_initialize_device_extensions";
}

std::string in_vulkan_scene_graph(const MissingFeature& loss) {
  if (loss.kind == RemedyKind::raise_version)
    return "WindowTraits::vulkanVersion = " + version_text(loss.core_since) + " or above";
  if (loss.kind == RemedyKind::enable_instance_extension)
    return "WindowTraits::instanceExtensionNames, or debugUtils = true; declare it";
  const std::string extension = "\"" + loss.extension + "\" in WindowTraits::deviceExtensionNames";
  if (loss.feature.empty()) return extension + "; declare it";
  return loss.feature + " in WindowTraits::deviceFeatures" +
         (loss.core_since ? ", and below vulkan " + version_text(loss.core_since) + " " : ", and ") +
         extension + "; declare the same";
}

}  // namespace

std::array<std::string, kEngineCount> engine_remedies(const MissingFeature& loss) {
  switch (loss.kind) {
    case RemedyKind::none:
    case RemedyKind::declare_less:
    case RemedyKind::other_queue_family:
      return {loss.remedy, loss.remedy, loss.remedy, loss.remedy};
    case RemedyKind::raise_version:
    case RemedyKind::enable_feature:
    case RemedyKind::enable_extension:
    case RemedyKind::enable_instance_extension:
      return {in_unity(loss), in_unreal(loss), in_godot(loss), in_vulkan_scene_graph(loss)};
  }
  return {};
}

}  // namespace imprint::bridge

#ifndef IMPRINT_SAMPLES_ADAPTERS_UNREAL_H_
#define IMPRINT_SAMPLES_ADAPTERS_UNREAL_H_
// Unreal Engine 5: Imprint in a plugin's module. WRITTEN AGAINST THE INTERFACE (IVulkanDynamicRHI), NOT RUN.
//
// Create the context once the Vulkan RHI is up, destroy it before it goes down, both on the render thread
// with the RHI thread flushed. Each frame, in a lambda that runs on the RHI thread and outside a render pass:
// frame_begin, record into RHIGetVkCommandBuffer(command list), frame_end, then
// RHIFinishExternalComputeWork(command buffer), for Imprint leaves a compute pipeline and descriptor sets
// bound. The number of the newest frame that the GPU has finished comes from the game's own RHI fences.
// Device extensions are told by the RHI; features are not. Who adds some with
// FVulkanRHIExternalDeviceExtensionBase before the RHI starts declares them.

#include <IVulkanDynamicRHI.h>

#include <utility>
#include <vector>

#include "enabled.h"

namespace imprint::adapters {

// Keeps the names that `info` points to; needed until context_create has returned.
struct UnrealDevice {
  UnrealDevice() = default;
  UnrealDevice(UnrealDevice&&) = default;
  UnrealDevice(const UnrealDevice&) = delete;

  TArray<FAnsiString> loaded_extensions;
  std::vector<const char*> extension_names;
  imp_vk_device_info info = imp_vk_device_info_init();
};

// features: those of `enabled`; its api_version and device extensions are replaced by what the RHI tells.
// Records only: the RHI has no queue of which others keep off.
inline UnrealDevice describe_unreal(IVulkanDynamicRHI& rhi, const Enabled& enabled = {}) {
  UnrealDevice made;
  made.loaded_extensions = rhi.RHIGetLoadedDeviceExtensions();
  for (const FAnsiString& name : made.loaded_extensions) made.extension_names.push_back(*name);
  Enabled told = enabled;
  told.api_version = rhi.RHIGetVulkanVersion();
  told.device_extensions = made.extension_names;
  made.info = begin_description(told);
  made.info.get_instance_proc_addr =
      reinterpret_cast<imp_get_instance_proc_addr>(rhi.RHIGetVkInstanceProcAddr("vkGetInstanceProcAddr"));
  made.info.instance = rhi.RHIGetVkInstance();
  made.info.physical_device = rhi.RHIGetVkPhysicalDevice();
  made.info.device = rhi.RHIGetVkDevice();
  made.info.allocation_callbacks = rhi.RHIGetVkAllocationCallbacks();
  made.info.queue.family = rhi.RHIGetGraphicsQueueFamilyIndex();
  return made;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_UNREAL_H_

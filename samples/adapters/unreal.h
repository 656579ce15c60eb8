#ifndef IMPRINT_SAMPLES_ADAPTERS_UNREAL_H_
#define IMPRINT_SAMPLES_ADAPTERS_UNREAL_H_
// Unreal Engine 5: Imprint in a plugin's module. WRITTEN AGAINST THE INTERFACE (IVulkanDynamicRHI), NOT RUN.
//
// Create the context after the Vulkan RHI is up and destroy it before the RHI goes down. Do both on the
// render thread, with the RHI thread flushed. Each frame, in a lambda that runs on the RHI thread and outside
// a render pass, call: frame_begin, record into RHIGetVkCommandBuffer(command list), frame_end, then
// RHIFinishExternalComputeWork(command buffer). The last call is needed because Imprint leaves a compute
// pipeline and descriptor sets bound. The newest frame that the GPU has finished comes from the game's own
// RHI fences: Frames clock(0), and clock.completed(frame). The RHI reports device extensions, but not
// features. Declare those that the game adds with FVulkanRHIExternalDeviceExtensionBase before the RHI
// starts.

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

// Takes the features from `enabled`; version and device extensions come from the RHI. Record mode only: the
// RHI offers no queue that other threads leave alone.
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

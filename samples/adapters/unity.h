#ifndef IMPRINT_SAMPLES_ADAPTERS_UNITY_H_
#define IMPRINT_SAMPLES_ADAPTERS_UNITY_H_
// Unity: Imprint in a native rendering plugin. WRITTEN AGAINST THE INTERFACE (IUnityGraphicsVulkan,
// IUnityGraphicsVulkanV2), NOT RUN.
//
// Create the context at kUnityGfxDeviceEventInitialize, destroy it at kUnityGfxDeviceEventShutdown. Then
// either record or submit:
//   record: configure a plugin event with kUnityVulkanRenderPass_EnsureOutside and
//     kUnityVulkanEventConfigFlag_ModifiesCommandBuffersState. In it take CommandRecordingState and call
//     frame_begin, record into its commandBuffer, and frame_end, once per frame.
//   submit: configure the event with kUnityVulkanGraphicsQueueAccess_Allow and make all calls of a frame in
//     it.
// Unity's interface does not report the enabled features. For more than the baseline, wrap vkCreateDevice
// with AddInterceptInitialization, in a plugin that loads on start, and declare the features passed there.

#include <IUnityGraphicsVulkan.h>

#include <cstring>

#include "enabled.h"

namespace imprint::adapters {

enum class UnityAccess { record, submit };

// vulkan: an IUnityGraphicsVulkan or IUnityGraphicsVulkanV2.
template <class Vulkan>
imp_vk_device_info describe_unity(Vulkan& vulkan, UnityAccess access, const Enabled& enabled = {}) {
  const UnityVulkanInstance unity = vulkan.Instance();
  imp_vk_device_info info = begin_description(enabled);
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(unity.getInstanceProcAddr);
  info.instance = unity.instance;
  info.physical_device = unity.physicalDevice;
  info.device = unity.device;
  static_assert(sizeof unity.pipelineCache == sizeof info.pipeline_cache);
  std::memcpy(&info.pipeline_cache, &unity.pipelineCache, sizeof info.pipeline_cache);
  info.queue.family = unity.queueFamilyIndex;
  if (access == UnityAccess::submit) {
    info.queue.queue = unity.graphicsQueue;
    info.queue.access = IMP_QUEUE_SINGLE_THREAD;  // Unity keeps other threads off the queue during the event
  }
  return info;
}

// time_s: the game's time, such as Time.timeAsDouble.
inline imp_frame_info unity_frame(const UnityVulkanRecordingState& state, double time_s) {
  imp_frame_info frame = imp_frame_info_init();
  frame.frame = state.currentFrameNumber;
  frame.safe_frame = state.safeFrameNumber;
  frame.time_s = time_s;
  return frame;
}

// Passes on the state that Imprint cannot query, so that record can refuse a command buffer it must not use.
inline imp_record_info unity_recording(const UnityVulkanRecordingState& state) {
  imp_record_info info = imp_record_info_init();
  info.command_buffer = state.commandBuffer;
  if (state.renderPass) info.state |= IMP_RECORD_IN_RENDER_PASS;
  if (state.commandBufferLevel == VK_COMMAND_BUFFER_LEVEL_SECONDARY) info.state |= IMP_RECORD_SECONDARY;
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_UNITY_H_

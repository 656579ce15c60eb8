#ifndef IMPRINT_SAMPLES_ADAPTERS_VSG_H_
#define IMPRINT_SAMPLES_ADAPTERS_VSG_H_
// VulkanSceneGraph: WRITTEN AGAINST THE INTERFACE (vsg::Instance, vsg::PhysicalDevice, vsg::Device), NOT RUN.
//
// vsg::Instance asks for Vulkan 1.0 by default. Set WindowTraits::vulkanVersion to VK_API_VERSION_1_1 or
// more. Put your own vsg::Command before the RenderGraph in the CommandGraph. Its record(vsg::CommandBuffer&
// commands) makes the frame's calls and records into commands.vk(). A frame is safe once the vsg::Fence of
// its submission is signalled. Record, do not submit: VulkanSceneGraph's queue lock is private, and its
// submit takes no VkFence. Declare the device extensions and features that WindowTraits has
// (deviceExtensionNames, deviceFeatures->data()).

#include <vsg/vk/Device.h>
#include <vsg/vk/Instance.h>
#include <vsg/vk/PhysicalDevice.h>

#include "enabled.h"

namespace imprint::adapters {

// family: of the queue that the CommandGraph is submitted to. The version comes from the instance, not from
// `enabled`.
inline imp_vk_device_info describe_vsg(const vsg::Device& device, std::uint32_t family,
                                       const Enabled& enabled = {}) {
  Enabled told = enabled;
  told.api_version = device.getInstance()->apiVersion;
  imp_vk_device_info info = begin_description(told);
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(&vkGetInstanceProcAddr);
  info.instance = device.getInstance()->vk();
  info.physical_device = device.getPhysicalDevice()->vk();
  info.device = device.vk();
  info.allocation_callbacks = static_cast<const VkAllocationCallbacks*>(device.getAllocationCallbacks());
  info.queue.family = family;
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_VSG_H_

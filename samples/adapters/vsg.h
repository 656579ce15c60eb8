#ifndef IMPRINT_SAMPLES_ADAPTERS_VSG_H_
#define IMPRINT_SAMPLES_ADAPTERS_VSG_H_
// VulkanSceneGraph. A test compiles this header against declarations of vsg::Instance, vsg::PhysicalDevice,
// vsg::Device and vsg::Queue. It never ran in VulkanSceneGraph.
//
// vsg::Instance asks for Vulkan 1.0 by default. Set WindowTraits::vulkanVersion to VK_API_VERSION_1_1 or
// more.
//
// To record, put your own vsg::Command before the RenderGraph in the CommandGraph. Its
// record(vsg::CommandBuffer& commands) const makes the frame's calls and records into commands.vk(). It is
// const: keep context, agents and clock in a struct that the command points to.
//
// To submit, take VsgQueue and make the frame's calls before Viewer::recordAndSubmit. vsg::Queue::submit
// locks the queue and takes no VkFence. With submit_without_fence the clock tells which frames are
// complete.
//
// RecordAndSubmitTask waits for the fence of three frames ago: Frames clock(3). Declare the features that
// WindowTraits has (deviceFeatures->data()).

#include <imprint/imprint.hpp>

#include <vsg/vk/Device.h>
#include <vsg/vk/Instance.h>
#include <vsg/vk/PhysicalDevice.h>
#include <vsg/vk/Queue.h>

#include <span>
#include <vector>

#include "enabled.h"

namespace imprint::adapters {

// Submits through VulkanSceneGraph's queue. Must live as long as the context.
class VsgQueue {
 public:
  explicit VsgQueue(vsg::Queue& queue) : queue_(queue) {}
  VkResult operator()(VkQueue, std::span<const VkSubmitInfo> submits, std::uint64_t) {
    submits_.assign(submits.begin(), submits.end());  // keeps its memory
    return queue_.submit(submits_);
  }
  game::QueueDesc describe() {
    return game::QueueDesc::submitted_by(queue_.vk(), queue_.queueFamilyIndex(), *this, true);
  }

 private:
  vsg::Queue& queue_;
  std::vector<VkSubmitInfo> submits_;
};

// family: of the queue that the CommandGraph is submitted to. The instance tells its api_version and the
// device its extensions; those of `enabled` are not read. queue: null to record.
inline imp_vk_device_info describe_vsg(const vsg::Device& device, std::uint32_t family,
                                       const Enabled& enabled = {}, VsgQueue* queue = nullptr) {
  Enabled told = enabled;
  told.api_version = device.getInstance()->apiVersion;
  told.device_extensions = device.enabledExtensions;
  imp_vk_device_info info = begin_description(told);
  info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(&vkGetInstanceProcAddr);
  info.instance = device.getInstance()->vk();
  info.physical_device = device.getPhysicalDevice()->vk();
  info.device = device.vk();
  info.allocation_callbacks = static_cast<const VkAllocationCallbacks*>(device.getAllocationCallbacks());
  info.queue = queue ? queue->describe() : game::QueueDesc::record_only(family);
  return info;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_VSG_H_

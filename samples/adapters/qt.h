#ifndef IMPRINT_SAMPLES_ADAPTERS_QT_H_
#define IMPRINT_SAMPLES_ADAPTERS_QT_H_
// Qt 6 with a QVulkanWindow. Run by tests/hosts with Qt 6.4.
//
// In the QVulkanWindowRenderer:
//   initResources     describe_qt(window), Context::create, Frames(window.concurrentFrameCount())
//   startNextFrame    before vkCmdBeginRenderPass: the frame's calls, into window.currentCommandBuffer()
//   releaseResources  Context::close: Qt has waited for the device
// Qt tells no features and extensions, so this declares none: Vulkan 1.1 and nothing else, which is always
// right. QVulkanInstance::setApiVersion must have asked for 1.1 or newer.

#include <imprint/imprint.hpp>

#include <QVulkanInstance>
#include <QVulkanWindow>

namespace imprint::adapters {

enum class QtQueue {
  record,  // frame_record into Qt's command buffer
  submit   // frame_submit, on the GUI thread, where Qt submits too
};

inline imp_vk_device_info describe_qt(QVulkanWindow& window, QtQueue access = QtQueue::record) {
  game::DeviceDesc desc;
  desc.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(
      window.vulkanInstance()->getInstanceProcAddr("vkGetInstanceProcAddr"));
  desc.instance = window.vulkanInstance()->vkInstance();
  desc.physical_device = window.physicalDevice();
  desc.device = window.device();
  desc.api_version = (1u << 22) | (1u << 12);
  desc.queue = access == QtQueue::record ? game::QueueDesc::record_only(window.graphicsQueueFamilyIndex())
                                         : game::QueueDesc::single_thread(window.graphicsQueue(),
                                                                          window.graphicsQueueFamilyIndex());
  return desc;
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_QT_H_

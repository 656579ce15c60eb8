#ifndef IMPRINT_SAMPLES_ADAPTERS_QT_H_
#define IMPRINT_SAMPLES_ADAPTERS_QT_H_
// Qt 6 with a QVulkanWindow. Run by tests/hosts with Qt 6.4.
//
// In the QVulkanWindowRenderer:
//   initResources     describe_qt(window), Context::create, Frames clock(window.concurrentFrameCount())
//   startNextFrame    before vkCmdBeginRenderPass: the frame's calls, into window.currentCommandBuffer()
//   releaseResources  close_qt(window, context, clock, save)
// Call QVulkanInstance::setApiVersion with 1.1 or newer before create: Qt asks for 1.0 otherwise. Qt tells
// no features and extensions, so this declares the instance's version and nothing else, which is always
// right.

#include <imprint/imprint.hpp>

#include <QVersionNumber>
#include <QVulkanInstance>
#include <QVulkanWindow>

#include "last_frame.h"

namespace imprint::adapters {

// The version that the instance was created with.
inline std::uint32_t qt_api_version(const QVulkanInstance& instance) {
  const QVersionNumber version = instance.apiVersion();
  if (version.isNull()) return VK_API_VERSION_1_0;
  return VK_MAKE_API_VERSION(0, static_cast<std::uint32_t>(version.majorVersion()),
                             static_cast<std::uint32_t>(version.minorVersion()), 0);
}

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
  desc.api_version = qt_api_version(*window.vulkanInstance());
  desc.queue = access == QtQueue::record ? game::QueueDesc::record_only(window.graphicsQueueFamilyIndex())
                                         : game::QueueDesc::single_thread(window.graphicsQueue(),
                                                                          window.graphicsQueueFamilyIndex());
  return desc;
}

// In releaseResources, for a context that records: close_after_last_frame on the window's queue. A context
// that submits needs only Brain::save and Context::close.
template <class Save>
game::Outcome close_qt(QVulkanWindow& window, game::Context& context, game::Frames& clock, Save&& save) {
  return close_after_last_frame(context, clock, describe_qt(window), window.graphicsQueue(),
                                std::forward<Save>(save));
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_QT_H_

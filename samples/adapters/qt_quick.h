#ifndef IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_
#define IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_
// Qt Quick with its scene graph on Vulkan, threaded or basic render loop. Run by tests/hosts with Qt 6.4.
//
//   QQuickWindow::setGraphicsApi(QSGRendererInterface::Vulkan);   // before the first window
//   window.setVulkanInstance(&instance);                          // of API version 1.1 or newer
//   QtQuickGuest guest(window, open, frame, close);
//     bool open(const imp_vk_device_info& device);   makes context, brain and agents
//     void frame(const imp_frame_info& now, VkCommandBuffer commands);
//     void close();                                  Context::close(): the GPU has completed all of it
//
// All three come on the thread of the scene graph, while it does not render. close() comes when the scene
// graph is invalidated: at the end, and when the window is hidden unless QQuickWindow::setPersistentGraphics
// and setPersistentSceneGraph keep it. When the window is shown again open() is called for a new device: save
// in close() and load in open() what was learned. The guest must live as long as the window.

#include <imprint/imprint.hpp>

#include <QElapsedTimer>
#include <QQuickWindow>
#include <QSGRendererInterface>
#include <QVulkanFunctions>
#include <QVulkanInstance>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace imprint::adapters {

class QtQuickGuest {
 public:
  using Open = std::function<bool(const imp_vk_device_info& device)>;
  using FrameCalls = std::function<void(const imp_frame_info& now, VkCommandBuffer commands)>;
  using Close = std::function<void()>;

  QtQuickGuest(QQuickWindow& window, Open open, FrameCalls frame, Close close)
      : window_(window), open_(std::move(open)), frame_(std::move(frame)), close_(std::move(close)) {
    QObject::connect(
        &window, &QQuickWindow::beforeRendering, &window, [this] { render(); }, Qt::DirectConnection);
    QObject::connect(
        &window, &QQuickWindow::sceneGraphInvalidated, &window, [this] { invalidate(); },
        Qt::DirectConnection);
  }
  QtQuickGuest(const QtQuickGuest&) = delete;
  QtQuickGuest& operator=(const QtQuickGuest&) = delete;

 private:
  template <class T>
  T resource(QSGRendererInterface::Resource which) const {
    void* found = window_.rendererInterface()->getResource(&window_, which);
    return found ? *static_cast<T*>(found) : T{};
  }

  // Qt's choice, which Qt 6.4 does not tell: the first family that draws, computes and presents.
  std::uint32_t family(VkPhysicalDevice device) {
    QVulkanInstance& instance = *window_.vulkanInstance();
    std::uint32_t count = 0;
    instance.functions()->vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    instance.functions()->vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
    constexpr VkQueueFlags kNeeded = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    for (std::uint32_t i = 0; i < count; ++i)
      if ((families[i].queueFlags & kNeeded) == kNeeded && instance.supportsPresent(device, i, &window_))
        return i;
    return 0;
  }

  imp_vk_device_info describe() {
    QVulkanInstance& instance = *window_.vulkanInstance();
    game::DeviceDesc desc;
    desc.get_instance_proc_addr =
        reinterpret_cast<imp_get_instance_proc_addr>(instance.getInstanceProcAddr("vkGetInstanceProcAddr"));
    desc.instance = instance.vkInstance();
    desc.physical_device = resource<VkPhysicalDevice>(QSGRendererInterface::PhysicalDeviceResource);
    desc.device = device_ = resource<VkDevice>(QSGRendererInterface::DeviceResource);
    desc.api_version = (1u << 22) | (1u << 12);
    desc.queue = game::QueueDesc::record_only(family(desc.physical_device));
    return desc;
  }

  void render() {
    if (window_.rendererInterface()->graphicsApi() != QSGRendererInterface::Vulkan) return;
    if (!clock_) {
      clock_.emplace(static_cast<std::uint32_t>(std::max(1, window_.graphicsStateInfo().framesInFlight)));
      elapsed_.start();
      opened_ = open_(describe());
    }
    if (!opened_) return;
    const double step_s = static_cast<double>(elapsed_.nsecsElapsed()) * 1e-9;
    elapsed_.start();
    const imp_frame_info now = clock_->next(step_s);
    window_.beginExternalCommands();
    frame_(now, resource<VkCommandBuffer>(QSGRendererInterface::CommandListResource));
    window_.endExternalCommands();
  }

  // Nothing renders now, and no other thread uses the queue.
  void invalidate() {
    if (!clock_) return;
    if (opened_) {
      window_.vulkanInstance()->deviceFunctions(device_)->vkDeviceWaitIdle(device_);
      close_();
    }
    clock_.reset();
    opened_ = false;
  }

  QQuickWindow& window_;
  Open open_;
  FrameCalls frame_;
  Close close_;
  VkDevice device_ = nullptr;
  std::optional<game::Frames> clock_;
  QElapsedTimer elapsed_;
  bool opened_ = false;
};

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_

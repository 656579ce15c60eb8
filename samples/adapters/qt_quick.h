#ifndef IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_
#define IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_
// Qt Quick with its scene graph on Vulkan, threaded or basic render loop. Run by tests/hosts with Qt 6.4.
//
//   QQuickWindow::setGraphicsApi(QSGRendererInterface::Vulkan);   // before the first window
//   instance.setApiVersion({1, 1});                               // before QVulkanInstance::create
//   Context context; ...                                          // before the window: they outlive it
//   QQuickWindow window;
//   window.setVulkanInstance(&instance);
//   attach_to_qt_quick(window, context, open, frame, save);
//     bool open(const imp_vk_device_info& device);   makes context, brain and agents, and loads the brain.
//                                                    False: this scene graph goes without
//     void frame(const imp_frame_info& now, VkCommandBuffer commands);
//     void save();                                   may be empty; Brain::save: it will be on disk
//
// All three come on the thread of the scene graph, while it does not render. save() comes when the scene
// graph is invalidated: at the end, and when the window is hidden unless QQuickWindow::setPersistentGraphics
// and setPersistentSceneGraph keep it. Then one last frame completes the save and the context is destroyed,
// since its device goes. When the window is shown again open() is called for a new device.
// Qt Quick renders when an item changes: connect QQuickWindow::frameSwapped to QQuickWindow::update to play
// on without.

#include <imprint/imprint.hpp>

#include <QElapsedTimer>
#include <QQuickWindow>
#include <QSGRendererInterface>
#include <QVulkanFunctions>
#include <QVulkanInstance>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "last_frame.h"
#include "qt.h"

namespace imprint::adapters {

using QtQuickOpen = std::function<bool(const imp_vk_device_info& device)>;
using QtQuickFrame = std::function<void(const imp_frame_info& now, VkCommandBuffer commands)>;
using QtQuickSave = std::function<void()>;

namespace detail {

// Belongs to the window's connections.
class QtQuickGuest {
 public:
  QtQuickGuest(QQuickWindow& window, game::Context& context, QtQuickOpen open, QtQuickFrame frame,
               QtQuickSave save)
      : window_(window),
        context_(context),
        open_(std::move(open)),
        frame_(std::move(frame)),
        save_(std::move(save)) {}
  QtQuickGuest(const QtQuickGuest&) = delete;
  QtQuickGuest& operator=(const QtQuickGuest&) = delete;

  void render() {
    if (window_.rendererInterface()->graphicsApi() != QSGRendererInterface::Vulkan) return;
    if (!clock_) open();
    if (!opened_) return;
    const double step_s = static_cast<double>(elapsed_.nsecsElapsed()) * 1e-9;
    elapsed_.start();
    const imp_frame_info now = clock_->next(step_s);
    window_.beginExternalCommands();
    frame_(now, resource<VkCommandBuffer>(QSGRendererInterface::CommandListResource));
    window_.endExternalCommands();
  }

  // Nothing renders now, and no other thread uses the queue. Qt destroys the device next, so the context goes
  // even if open() failed after it had made one.
  void invalidate() {
    if (!clock_) return;
    const auto save = [this] {
      if (opened_ && save_) save_();
    };
    const game::Outcome closed = close_after_last_frame(context_, *clock_, device_, queue_, save);
    if (!closed) qWarning("imprint: at the end of the scene graph: %s", closed.message());
    clock_.reset();
    opened_ = false;
  }

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

  void open() {
    QVulkanInstance& instance = *window_.vulkanInstance();
    game::DeviceDesc desc;
    desc.get_instance_proc_addr =
        reinterpret_cast<imp_get_instance_proc_addr>(instance.getInstanceProcAddr("vkGetInstanceProcAddr"));
    desc.instance = instance.vkInstance();
    desc.physical_device = resource<VkPhysicalDevice>(QSGRendererInterface::PhysicalDeviceResource);
    desc.device = resource<VkDevice>(QSGRendererInterface::DeviceResource);
    desc.api_version = qt_api_version(instance);
    desc.queue = game::QueueDesc::record_only(family(desc.physical_device));
    device_ = desc;
    queue_ = resource<VkQueue>(QSGRendererInterface::CommandQueueResource);
    clock_.emplace(static_cast<std::uint32_t>(std::max(1, window_.graphicsStateInfo().framesInFlight)));
    elapsed_.start();
    opened_ = open_(device_);
    if (opened_) return;
    const char* error = context_.api() ? context_.api()->last_error() : "";
    qWarning(
        "imprint: open returned false, so this scene graph gets no frame calls. This thread's last error: %s",
        *error ? error : "none");
  }

  QQuickWindow& window_;
  game::Context& context_;
  QtQuickOpen open_;
  QtQuickFrame frame_;
  QtQuickSave save_;
  imp_vk_device_info device_ = imp_vk_device_info_init();
  VkQueue queue_ = VK_NULL_HANDLE;
  std::optional<game::Frames> clock_;  // empty: no scene graph
  QElapsedTimer elapsed_;
  bool opened_ = false;
};

}  // namespace detail

// Until the window is destroyed. `context`, and all that the three functions use, must outlive the window.
inline void attach_to_qt_quick(QQuickWindow& window, game::Context& context, QtQuickOpen open,
                               QtQuickFrame frame, QtQuickSave save = {}) {
  const auto guest = std::make_shared<detail::QtQuickGuest>(window, context, std::move(open),
                                                            std::move(frame), std::move(save));
  QObject::connect(
      &window, &QQuickWindow::beforeRendering, &window, [guest] { guest->render(); }, Qt::DirectConnection);
  QObject::connect(
      &window, &QQuickWindow::sceneGraphInvalidated, &window, [guest] { guest->invalidate(); },
      Qt::DirectConnection);
}

}  // namespace imprint::adapters

#endif  // IMPRINT_SAMPLES_ADAPTERS_QT_QUICK_H_

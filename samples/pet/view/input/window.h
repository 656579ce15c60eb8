#pragma once
// A window: GLFW for the frame and the keys, a swapchain for the pictures.

#include <vulkan/vulkan.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/view/input/pad.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/yard/world_view.h"

struct GLFWwindow;

namespace pet {

// Raw mouse and key events. StageInput gives them a meaning.
struct WindowEvents {
  std::function<void(int key, int modifiers)> key;  // pressed
  std::function<void(int button, bool pressed, Vec2 at)> mouse;
  std::function<void(Vec2 at, Vec2 moved)> moved;
  std::function<void(float steps)> wheel;
};

class Window {
 public:
  // Fails without a display.
  static Result<std::unique_ptr<Window>> create(std::uint32_t width, std::uint32_t height,
                                                const std::string& title);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Sets what a VulkanHost needs to show pictures here.
  void fill(VulkanOptions& options) const;
  // Call attach once the host exists, and detach before the host is destroyed.
  Result<> attach(VulkanHost& host);
  void detach();

  void set_events(WindowEvents events) { events_ = std::move(events); }
  void poll();
  bool closed() const;
  bool pressed(int key) const;  // now
  // The first gamepad, if one is plugged in.
  std::optional<PadState> pad() const;
  // Minimised: nothing to draw on.
  bool hidden() const;
  GLFWwindow* handle() const { return window_; }
  VkExtent2D size() const;  // pixels

  // A frame: acquire, show, submit with the semaphores, present. `slot` is the frame in flight, whose last
  // frame is complete. False while there is nothing to draw on. Waits for the GPU when it replaces the
  // swapchain.
  Result<bool> acquire(std::uint32_t slot);
  // Records a copy of `image` (TRANSFER_SRC_OPTIMAL) into the acquired picture.
  void show(VkCommandBuffer commands, VkImage image, VkExtent2D extent);
  VkSemaphore acquired() const { return acquired_[slot_]; }
  VkSemaphore finished() const { return finished_[picture_]; }
  Result<> present();

 private:
  Window() = default;
  void set_callbacks();
  Result<> create_swapchain();
  Result<VkSwapchainKHR> make_swapchain(const VkSurfaceCapabilitiesKHR& can, VkExtent2D extent);
  Result<VkSurfaceFormatKHR> choose_format() const;
  void destroy_swapchain();

  GLFWwindow* window_ = nullptr;
  WindowEvents events_;
  Vec2 mouse_;
  VulkanHost* host_ = nullptr;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D extent_{};
  std::vector<VkImage> images_;
  // One per picture: the presentation engine may hold it until the picture comes back.
  std::vector<VkSemaphore> finished_;
  std::vector<VkSemaphore> acquired_;  // one per frame in flight
  std::uint32_t picture_ = 0, slot_ = 0;
  bool stale_ = true;
};

}  // namespace pet

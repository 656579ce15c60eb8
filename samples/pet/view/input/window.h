#pragma once
// A window: GLFW for the frame and the keys, a swapchain for the pictures.

#include <vulkan/vulkan.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/view/input/pad.h"
#include "samples/pet/view/render/vulkan_host.h"
#include "samples/pet/yard/world_view.h"

struct GLFWwindow;

namespace pet {

// Mouse and keys as they come; the stage gives them a meaning.
struct WindowEvents {
  std::function<void(int key, int modifiers)> key;  // pressed
  std::function<void(int button, bool pressed, Vec2 at)> mouse;
  std::function<void(Vec2 at, Vec2 moved)> moved;
  std::function<void(float steps)> wheel;
};

class Window {
 public:
  // Throws VulkanError when there is no display.
  Window(std::uint32_t width, std::uint32_t height, const std::string& title);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // What a VulkanHost needs to show itself here.
  void fill(VulkanOptions& options) const;
  // Call once the host exists, and before it is destroyed.
  void attach(VulkanHost& host);
  void detach();

  void set_events(WindowEvents events) { events_ = std::move(events); }
  void poll();
  bool closed() const;
  bool pressed(int key) const;  // now
  // The first gamepad, if one is plugged in.
  std::optional<PadState> pad() const;
  // Minimised: there is nothing to draw on.
  bool hidden() const;
  GLFWwindow* handle() const { return window_; }
  VkExtent2D size() const;  // pixels

  // A frame: acquire, show, then submit with the semaphores and present. `slot`: of the frame in flight,
  // whose last frame is complete. False while there is nothing to draw on; it may have made the swapchain
  // anew, and then waited for the GPU.
  bool acquire(std::uint32_t slot);
  // Records a copy of `image` (TRANSFER_SRC_OPTIMAL) into the acquired picture.
  void show(VkCommandBuffer commands, VkImage image, VkExtent2D extent);
  VkSemaphore acquired() const { return acquired_[slot_]; }
  VkSemaphore finished() const { return finished_[picture_]; }
  void present();

 private:
  void create_swapchain();
  void destroy_swapchain();

  GLFWwindow* window_ = nullptr;
  WindowEvents events_;
  Vec2 mouse_;
  VulkanHost* host_ = nullptr;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D extent_{};
  std::vector<VkImage> images_;
  std::vector<VkSemaphore>
      finished_;  // one a picture: the presentation engine may hold it until the picture comes back
  std::vector<VkSemaphore> acquired_;  // one a frame in flight
  std::uint32_t picture_ = 0, slot_ = 0;
  bool stale_ = true;
};

}  // namespace pet

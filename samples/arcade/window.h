#pragma once
// A window that shows a canvas: GLFW for the frame and the keys, a swapchain on the device of a Host. The
// order in a frame: Host::begin_frame, show, Host::end_frame with the two semaphores, present.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "canvas.h"
#include "host.h"

struct GLFWwindow;

namespace arcade {

using picture::Canvas;

class Window {
 public:
  ~Window();
  // False on failure, here and below: see error(). First the window; the host is opened with extensions();
  // then attach().
  bool open(const char* title, const Canvas& canvas);
  std::span<const char* const> instance_extensions() const { return instance_extensions_; }
  static std::span<const char* const> device_extensions();
  bool attach(Host& host);
  // Before the host ends.
  void detach();
  const std::string& error() const { return error_; }

  // Handles events. False once the player closed the window.
  bool poll();
  bool is_space_down() const;

  // Records the copy of `canvas` into the next picture. `slot`: the frame in flight, whose last frame is
  // over.
  bool show(VkCommandBuffer commands, const Canvas& canvas, std::uint32_t slot);
  VkSemaphore acquired() const { return acquired_[slot_]; }
  VkSemaphore finished() const { return finished_[picture_]; }
  bool present();

 private:
  bool fail(const char* what, VkResult result = VK_SUCCESS);
  bool make_swapchain();
  void destroy_swapchain();
  bool make_staging(VkDeviceSize bytes);
  bool acquire();
  void record_copy(VkCommandBuffer commands, const Canvas& canvas) const;

  GLFWwindow* window_ = nullptr;
  std::vector<const char*> instance_extensions_;
  Host* host_ = nullptr;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D extent_{};
  bool is_blue_first_ = false;
  std::vector<VkImage> images_;
  std::vector<VkSemaphore> finished_;  // one per picture, which keeps it until it comes back
  std::array<VkSemaphore, Host::kFramesInFlight> acquired_{};
  VkBuffer staging_ = VK_NULL_HANDLE;  // a canvas per frame in flight
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint8_t* mapped_ = nullptr;
  VkDeviceSize canvas_bytes_ = 0;
  std::uint32_t picture_ = 0, slot_ = 0;
  std::string error_;
};

}  // namespace arcade

#pragma once
// A window of GLFW or of SDL2, for a host that draws with Vulkan.

#include <memory>
#include <vector>

#include <vulkan/vulkan_core.h>

namespace imprint::hosts {

enum class WindowLibrary { none, glfw, sdl };

class Window {
 public:
  virtual ~Window() = default;
  virtual std::vector<const char*> instance_extensions() = 0;  // they live as long as the window
  virtual VkSurfaceKHR make_surface(VkInstance instance) = 0;  // null on failure
  virtual void poll() = 0;
  virtual void resize(int width, int height) = 0;
};

// Null, and a gtest failure, when there is no display or the library is not built in.
std::unique_ptr<Window> open_window(WindowLibrary library);

}  // namespace imprint::hosts

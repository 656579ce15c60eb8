#include "tests/hosts/window.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <gtest/gtest.h>
#ifdef HOST_HAS_SDL
#define SDL_MAIN_HANDLED
#include <SDL.h>
#include <SDL_vulkan.h>
#endif

#include <cstdint>

namespace imprint::hosts {
namespace {

constexpr int kWidth = 320, kHeight = 240;

class GlfwWindow : public Window {
 public:
  bool open() {
    if (!glfwInit())
      return ADD_FAILURE() << "GLFW did not start: the tests of hosts need a display, such as Xvfb", false;
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    window_ = glfwCreateWindow(kWidth, kHeight, "host", nullptr, nullptr);
    if (!window_) ADD_FAILURE() << "GLFW could not open a window";
    return window_ != nullptr;
  }
  ~GlfwWindow() override {
    if (window_) glfwDestroyWindow(window_);
    glfwTerminate();
  }
  std::vector<const char*> instance_extensions() override {
    std::uint32_t count = 0;
    const char** names = glfwGetRequiredInstanceExtensions(&count);
    return {names, names + count};
  }
  VkSurfaceKHR make_surface(VkInstance instance) override {
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    glfwCreateWindowSurface(instance, window_, nullptr, &surface);
    return surface;
  }
  void poll() override { glfwPollEvents(); }
  void resize(int width, int height) override {
    glfwSetWindowSize(window_, width, height);
    glfwPollEvents();
  }

 private:
  GLFWwindow* window_ = nullptr;
};

#ifdef HOST_HAS_SDL
class SdlWindow : public Window {
 public:
  bool open() {
    SDL_SetMainReady();
    if (SDL_Init(SDL_INIT_VIDEO) != 0) return ADD_FAILURE() << "SDL did not start: " << SDL_GetError(), false;
    window_ = SDL_CreateWindow("host", SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, kWidth, kHeight,
                               SDL_WINDOW_VULKAN | SDL_WINDOW_RESIZABLE);
    if (!window_) ADD_FAILURE() << "SDL could not open a window: " << SDL_GetError();
    return window_ != nullptr;
  }
  ~SdlWindow() override {
    if (window_) SDL_DestroyWindow(window_);
    SDL_Quit();
  }
  std::vector<const char*> instance_extensions() override {
    unsigned count = 0;
    SDL_Vulkan_GetInstanceExtensions(window_, &count, nullptr);
    std::vector<const char*> names(count);
    SDL_Vulkan_GetInstanceExtensions(window_, &count, names.data());
    return names;
  }
  VkSurfaceKHR make_surface(VkInstance instance) override {
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    SDL_Vulkan_CreateSurface(window_, instance, &surface);
    return surface;
  }
  void poll() override {
    SDL_Event event;
    while (SDL_PollEvent(&event)) {
    }
  }
  void resize(int width, int height) override {
    SDL_SetWindowSize(window_, width, height);
    poll();
  }

 private:
  SDL_Window* window_ = nullptr;
};
#endif

template <class T>
std::unique_ptr<Window> opened() {
  auto window = std::make_unique<T>();
  if (!window->open()) return nullptr;
  return window;
}

}  // namespace

std::unique_ptr<Window> open_window(WindowLibrary library) {
  if (library == WindowLibrary::glfw) return opened<GlfwWindow>();
#ifdef HOST_HAS_SDL
  if (library == WindowLibrary::sdl) return opened<SdlWindow>();
#endif
  ADD_FAILURE() << "this window library is not built in";
  return nullptr;
}

}  // namespace imprint::hosts

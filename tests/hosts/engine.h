#pragma once
// A host like an engine: its own Vulkan loader, a window with a swapchain, a graphics pipeline, frames in
// flight with fences, and a readback of every frame's picture. It knows nothing of Imprint, except that it
// tells the adapter for plain Vulkan what it passed to vkCreateInstance and vkCreateDevice. Built twice: with
// volk and without libvulkan, and linked to libvulkan (HOST_LINKS_LIBVULKAN).

#ifdef HOST_LINKS_LIBVULKAN
#include <vulkan/vulkan.h>
#else
#include <volk.h>
#endif

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "samples/adapters/vulkan.h"
#include "tests/hosts/colour_target.h"
#include "tests/hosts/scene.h"
#include "tests/hosts/window.h"

namespace imprint::hosts {

bool works(VkResult result, const char* what);  // fails the calling test when not

struct EngineOptions {
  std::uint32_t api_version = VK_API_VERSION_1_1;
  bool modern = false;  // timeline semaphores, synchronization2, float16 and other features that new engines
                        // enable, where supported
  bool godot = false;   // enables what Godot 4 does: no timeline semaphores, no synchronization2
  std::uint32_t frames_in_flight = 2;
  WindowLibrary window = WindowLibrary::glfw;
  bool validation = true;  // with synchronisation checks
};

enum class Access { record, lock, single_thread, submit };

class Engine {
 public:
  static constexpr VkExtent2D kExtent{128, 128};

  explicit Engine(const EngineOptions& options);  // failures are gtest failures; ok() tells
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  bool ok() const { return ok_; }

  imp_vk_device_info declare(Access access);  // through the adapter

  struct Frame {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::uint64_t number = 0;  // from 1
    std::uint64_t safe_frame = 0;
  };
  Frame begin_frame();        // graphics state is bound already; Imprint may record
  void end_frame(Place pet);  // draws, submits, presents
  void finish_frames();       // waits for all; returns the safe frame
  std::uint64_t newest_frame() const { return number_; }
  void resize();  // a new swapchain after vkDeviceWaitIdle, as hosts do it

  const std::vector<std::uint64_t>& pictures() const {
    return pictures_;
  }                                                     // a hash of each finished frame's pixels, in order
  std::uint64_t messages() const { return messages_; }  // from validation
  const std::string& first_message() const { return first_message_; }

 private:
  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    VkSemaphore acquired = VK_NULL_HANDLE;
    ColourTarget target;
    VkBuffer read = VK_NULL_HANDLE;
    VkDeviceMemory read_memory = VK_NULL_HANDLE;
    const std::uint8_t* pixels = nullptr;
    std::uint64_t number = 0;  // 0: nothing submitted since the last read
  };
  bool make_instance(const EngineOptions& options);
  bool make_device(const EngineOptions& options);
  bool make_slot(Slot& slot);
  bool make_swapchain();
  void destroy_swapchain();
  void collect(Slot& slot);
  void show(Slot& slot);
  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags flags);
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* user);

  bool ok_ = false;
  std::unique_ptr<Window> window_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  // imprint: begin
  adapters::VulkanGuest guest_;
  // imprint: end
  std::uint32_t family_ = 0;
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features_11_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features_12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features features_13_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  Scene scene_;
  std::vector<Slot> slots_;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D swapchain_extent_{};
  std::vector<VkImage> swapchain_images_;
  std::vector<VkSemaphore> drawn_;  // of each swapchain image
  std::uint32_t picture_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t safe_frame_ = 0;
  std::vector<std::uint64_t> pictures_;
  std::atomic<std::uint64_t> messages_{0};
  std::mutex message_mutex_;
  std::string first_message_;
};

}  // namespace imprint::hosts

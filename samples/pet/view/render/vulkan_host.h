#pragma once
// The game's own Vulkan: instance, device, one graphics and compute queue, two frames in flight. This is what
// an engine already has; nothing in it is there for Imprint but device_info(), which declares to Imprint what
// this file created.
//
// Failures throw VulkanError; main() catches it and prints one line.

#include <imprint/imprint_vulkan.h>
#include <vulkan/vulkan.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace pet {

struct VulkanError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws VulkanError("vkCreateDevice: VK_ERROR_...") unless the result is a success code.
void check(VkResult result, const char* call);
std::string result_name(VkResult result);

struct VulkanOptions {
  std::string
      device;  // index ("0") or part of a name ("nvidia"); empty = discrete, else integrated, else any
  bool validation = false;                       // VK_LAYER_KHRONOS_validation with synchronisation checks
  std::vector<std::string> instance_extensions;  // what the window system needs; empty without a window
  std::function<VkSurfaceKHR(VkInstance)> create_surface;  // empty without a window
};

// How Imprint reaches the GPU in this game.
enum class QueueAccess {
  record,  // it records into the frame's command buffer, and never sees our queue
  submit,  // it submits on our queue, under our lock
};

// What begin_frame hands out.
struct FrameStart {
  VkCommandBuffer commands = VK_NULL_HANDLE;  // recording, outside a render pass
  std::uint64_t frame = 0;                    // counts from 1
  std::uint64_t safe_frame = 0;               // the GPU is done with every frame up to and including this one
  std::uint32_t slot = 0;  // frame % kFramesInFlight: which copy of per-frame buffers may be written now
};

class VulkanHost {
 public:
  static constexpr std::uint32_t kFramesInFlight = 2;

  explicit VulkanHost(const VulkanOptions& options);
  ~VulkanHost();
  VulkanHost(const VulkanHost&) = delete;
  VulkanHost& operator=(const VulkanHost&) = delete;

  // The declaration for imp_context_create. It points into this object, which must outlive the context.
  imp_vk_device_info device_info(QueueAccess access) const;

  // ---- a frame: begin_frame, record, end_frame ----
  // Waits until the GPU is done with the frame before the last one.
  FrameStart begin_frame();
  // Submits. The semaphores are for a window's images and null without one; `wait` is waited for before
  // colour output and transfers.
  void end_frame(VkSemaphore wait = VK_NULL_HANDLE, VkSemaphore signal = VK_NULL_HANDLE);
  // Waits for all submitted frames; not while one is open. Before shutting down, and before resources of the
  // last frames are replaced (a resize).
  void wait_idle();
  std::uint64_t safe_frame() const { return safe_frame_; }

  // Records and runs commands at once, and waits: for uploads while loading.
  void run_once(const std::function<void(VkCommandBuffer)>& record);

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t queue_family() const { return queue_family_; }
  VkSurfaceKHR surface() const { return surface_; }
  std::mutex& queue_mutex() const {
    return queue_mutex_;
  }  // a VkQueue may be used by one thread at a time: held for submit and present
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  const std::string& driver_name() const { return driver_name_; }  // "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  std::uint64_t validation_messages() const { return validation_messages_; }

  // A memory type with all of `flags`, among those in `type_bits`; throws when there is none.
  std::uint32_t memory_type(std::uint32_t type_bits, VkMemoryPropertyFlags flags) const;

 private:
  struct FrameSlot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    std::uint64_t frame = 0;  // the newest frame recorded here
  };
  struct EnabledFeatures;

  void create_instance(const VulkanOptions& options);
  void choose_physical_device(const std::string& wanted);
  std::uint32_t find_queue_family(VkPhysicalDevice candidate) const;
  void create_device();
  void create_frames();
  void destroy();

  static VKAPI_ATTR VkBool32 VKAPI_CALL on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                      VkDebugUtilsMessageTypeFlagsEXT types,
                                                      const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                      void* user);

  std::uint32_t api_version_ = VK_API_VERSION_1_1;
  std::vector<const char*> instance_extensions_;  // as enabled: Imprint is told the same lists
  std::vector<const char*> device_extensions_;
  std::vector<std::string> window_extensions_;
  std::unique_ptr<EnabledFeatures> features_;

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  std::string driver_name_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t queue_family_ = 0;
  mutable std::mutex queue_mutex_;

  std::array<FrameSlot, kFramesInFlight> slots_{};
  std::uint64_t frame_ = 0;
  std::uint64_t safe_frame_ = 0;
  std::atomic<std::uint64_t> validation_messages_{0};
};

}  // namespace pet

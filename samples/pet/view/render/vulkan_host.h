#pragma once
// The game's own Vulkan: instance, device, one graphics and compute queue, two frames in flight. An engine
// has all of this already. Only device_info() is for Imprint: it declares what this file created.

#include <imprint/imprint_vulkan.h>
#include <vulkan/vulkan.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "samples/pet/base/result.h"

namespace pet {

// An error "vkCreateDevice: found VK_ERROR_..." unless the result is a success code.
Result<> check(VkResult result, const char* call);
std::string result_name(VkResult result);

struct VulkanOptions {
  // Index ("0") or part of a name ("nvidia"). Empty: a discrete GPU, else an integrated one, else any.
  std::string device;
  bool validation = false;  // VK_LAYER_KHRONOS_validation with synchronisation checks
  // For the window system; both are empty without a window.
  std::vector<std::string> instance_extensions;
  std::function<Result<VkSurfaceKHR>(VkInstance)> create_surface;
};

// How Imprint reaches the GPU in this game.
enum class QueueAccess : std::uint8_t {
  record,  // records into the frame's command buffer; never sees the game's queue
  submit,  // submits on the game's queue, under the game's lock
};

struct FrameStart {
  VkCommandBuffer commands = VK_NULL_HANDLE;  // recording, outside a render pass
  std::uint64_t frame = 0;                    // counts from 1
  std::uint64_t safe_frame = 0;               // the GPU has finished this frame and all before it
  std::uint32_t slot = 0;  // frame % kFramesInFlight: the copy of per-frame buffers that may be written now
};

class VulkanHost {
 public:
  static constexpr std::uint32_t kFramesInFlight = 2;

  static Result<std::unique_ptr<VulkanHost>> create(const VulkanOptions& options);
  ~VulkanHost();
  VulkanHost(const VulkanHost&) = delete;
  VulkanHost& operator=(const VulkanHost&) = delete;

  // The declaration for context_create. It points into this object, which must outlive the context.
  imp_vk_device_info device_info(QueueAccess access) const;

  // ---- a frame: begin_frame, record, end_frame ----
  // Waits until the GPU has finished the frame before the last one.
  Result<FrameStart> begin_frame();
  // Submits. The semaphores are for a window's images, null without a window. Colour output and transfers
  // wait for `wait`.
  Result<> end_frame(VkSemaphore wait = VK_NULL_HANDLE, VkSemaphore signal = VK_NULL_HANDLE);
  // Waits for all submitted frames; not while one is open. For shutting down and for replacing resources of
  // the last frames (a resize).
  Result<> wait_idle();
  std::uint64_t safe_frame() const { return safe_frame_; }

  // Records and runs commands at once, and waits: for uploads while loading.
  Result<> run_once(const std::function<void(VkCommandBuffer)>& record);

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t queue_family() const { return queue_family_; }
  VkSurfaceKHR surface() const { return surface_; }
  // Held for submit and present: one thread at a time may use a VkQueue.
  std::mutex& queue_mutex() const { return queue_mutex_; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  const std::string& driver_name() const { return driver_name_; }  // "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  std::uint64_t validation_messages() const { return validation_messages_; }

  // A memory type with all of `flags`, among those in `type_bits`.
  Result<std::uint32_t> memory_type(std::uint32_t type_bits, VkMemoryPropertyFlags flags) const;

 private:
  struct FrameSlot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    std::uint64_t frame = 0;  // the newest frame recorded here
  };
  struct EnabledFeatures;

  VulkanHost() = default;
  Result<> create_instance(const VulkanOptions& options);
  Result<> choose_extensions(const VulkanOptions& options, std::vector<const char*>& layers);
  Result<> create_messenger();
  Result<> choose_physical_device(const std::string& wanted);
  void describe_physical_device();
  std::uint32_t find_queue_family(VkPhysicalDevice candidate) const;
  Result<> create_device();
  Result<> create_frames();

  static VKAPI_ATTR VkBool32 VKAPI_CALL on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                      VkDebugUtilsMessageTypeFlagsEXT types,
                                                      const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                      void* user);

  std::uint32_t api_version_ = VK_API_VERSION_1_1;
  std::vector<const char*> instance_extensions_;  // as enabled; Imprint gets the same lists
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

#pragma once
// A small Vulkan game: its own device, one queue, two frames in flight with a fence each. It knows nothing of
// Imprint.

#include <volk.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

class Host {
 public:
  static constexpr std::uint32_t kApiVersion = VK_API_VERSION_1_1;
  static constexpr std::uint32_t kFramesInFlight = 2;

  // device: part of a device's name; "" takes the first. The extensions are a window's. False on failure: see
  // error().
  bool open(const std::string& device, std::span<const char* const> instance_extensions = {},
            std::span<const char* const> device_extensions = {});
  ~Host();
  const std::string& error() const { return error_; }
  const char* device_name() const { return properties_.deviceName; }

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  VkDevice device() const { return device_; }
  std::uint32_t family() const { return family_; }
  VkQueue queue() const { return queue_; }

  // Waits for the frame that used this slot before, then begins the slot's command buffer. Null on failure.
  VkCommandBuffer begin_frame(std::uint64_t frame);
  // Ends the command buffer and submits it. Copies into a window's picture wait for `acquired`; `finished` is
  // for its presentation.
  bool end_frame(VkSemaphore acquired = VK_NULL_HANDLE, VkSemaphore finished = VK_NULL_HANDLE);
  // The newest frame whose fence was waited for: the GPU has finished it.
  std::uint64_t safe_frame() const { return safe_frame_; }
  void wait_for_all();

 private:
  struct Frame {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    std::uint64_t number = 0;  // 0: nothing in flight
  };

  bool choose(const std::string& device);
  bool fail(const char* what, VkResult result = VK_SUCCESS);
  bool wait(Frame& frame);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::array<Frame, kFramesInFlight> frames_{};
  Frame* current_ = nullptr;
  std::uint64_t safe_frame_ = 0;
  std::string error_;
};

#pragma once
// What a game brings along: its own Vulkan device, a queue, and frames in flight behind fences. Knows nothing
// of Imprint but how to declare itself.

#include <volk.h>

#include <array>
#include <cstdint>
#include <string>

#include "imprint/imprint_vulkan.h"

class Host {
 public:
  static constexpr std::uint64_t kFramesInFlight = 2;

  // device: part of a name, "" for the first one. False when there is no Vulkan device: see error().
  bool open(const std::string& device);
  ~Host();
  const std::string& error() const { return error_; }
  const char* device_name() const { return properties_.deviceName; }

  // What was given to vkCreateInstance and vkCreateDevice, for context_create. Record mode: no queue, only
  // its family.
  imp_vk_device_info declare() const;

  // Waits until the GPU is done with the frame that used these resources before, and begins its command
  // buffer. Null on failure.
  VkCommandBuffer begin_frame(std::uint64_t frame);
  // Ends the command buffer and submits it.
  bool end_frame();
  // The newest frame that the GPU has finished, as far as fences were waited for.
  std::uint64_t safe_frame() const { return safe_frame_; }
  void wait_for_all();

 private:
  struct Frame {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    std::uint64_t number = 0;  // 0: not submitted since it was waited for
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

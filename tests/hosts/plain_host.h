#pragma once
// A host like a game: its own loader (volk), instance, device, queue, frames in flight with fences, and work
// on the queue. It knows nothing of Imprint, except describe(), which repeats what it passed to
// vkCreateInstance and vkCreateDevice.

#include <volk.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine-bridge/context.h"

namespace imprint::bridge {

struct HostProfile {
  const char* name = "";
  std::uint32_t api_version = VK_API_VERSION_1_1;
  bool everything = false;  // the features and extensions that a new engine enables
  bool validation = true;
  bool second_queue = false;      // for Imprint alone: in a family without graphics if there is one, else a
                                  // second one in the host's family
  const char* without = nullptr;  // leaves this one out of everything
  std::vector<const char*> bonuses = {};  // enables these alone where the device has them: names of
                                          // features, or of extensions without a feature
  bool declares = true;                   // false: describe() leaves out what is enabled
};

class PlainHost {
 public:
  static constexpr std::uint32_t kFramesInFlight = 2;

  explicit PlainHost(const HostProfile& profile);  // failures are gtest failures; ok() tells
  ~PlainHost();
  PlainHost(const PlainHost&) = delete;
  PlainHost& operator=(const PlainHost&) = delete;
  bool ok() const { return ok_; }

  vk::DeviceDescription describe() const;
  bool enabled(const char* bonus) const;  // one of HostProfile::bonuses, or in everything
  VkQueue queue() const { return queue_; }
  std::uint32_t family() const { return family_; }
  VkQueue second_queue() const { return second_queue_; }  // null where the device has only one
  std::uint32_t second_family() const { return second_family_; }
  VkDevice device() const { return device_; }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  const VolkDeviceTable& vk() const { return vk_; }

  // The queue's lock. All of the host's submissions take it.
  std::mutex& mutex() { return mutex_; }
  VkResult submit(std::uint32_t count, const VkSubmitInfo* submits, VkFence fence);  // takes the lock

  // ---- a frame ----
  // Waits for the frame that used this command buffer before, and begins it with some work.
  VkCommandBuffer begin_frame(std::uint64_t frame);
  void end_frame();  // some work after Imprint's, then the submission
  std::uint64_t safe_frame() const { return safe_frame_; }
  void wait_idle();      // vkDeviceWaitIdle, as on a resize
  void finish_frames();  // waits for all; safe_frame() is then the last one

  // Starts a host thread that uses the queue under the lock until stopped.
  void start_busy_thread();
  void stop_busy_thread();

  std::uint64_t messages() const { return messages_; }
  std::string first_message() const;

 private:
  struct Frame {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    std::uint64_t number = 0;
  };
  bool make_instance(const HostProfile& profile);
  bool make_device(const HostProfile& profile);
  void choose_features(const HostProfile& profile);
  bool make_frames();
  void fill(VkCommandBuffer commands, std::uint32_t value);
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* user);

  bool ok_ = false;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkQueue second_queue_ = VK_NULL_HANDLE;
  std::uint32_t second_family_ = 0;
  std::uint32_t api_version_ = 0;
  bool declares_ = true;
  std::vector<std::string> enabled_;
  std::vector<const char*> instance_extensions_, device_extensions_;
  VkPhysicalDeviceFeatures2 features_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  struct Bonuses;
  std::shared_ptr<Bonuses> bonuses_;  // one struct per feature, as older engines chain them
  VkPhysicalDeviceVulkan11Features features_11_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features_12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features features_13_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkBuffer scene_ = VK_NULL_HANDLE;
  VkDeviceMemory scene_memory_ = VK_NULL_HANDLE;
  std::array<Frame, kFramesInFlight> frames_;
  std::uint64_t safe_frame_ = 0;
  std::uint32_t current_ = 0;
  std::mutex mutex_;
  std::thread busy_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> messages_{0};
  mutable std::mutex message_mutex_;
  std::string first_message_;
};

}  // namespace imprint::bridge

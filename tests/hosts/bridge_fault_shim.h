#pragma once
// What stands between Imprint and the driver, and makes one call of many fail: a vkGetInstanceProcAddr as a
// layer has one. Counts too what is made and destroyed through it.

#include <vulkan/vulkan_core.h>

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "compute/vk/device.h"

namespace imprint::bridge {

// Compute pipelines by their shader, kept over many lives on one device, so that a slow compiler runs once
// for each. They outlive the layouts that they were made with, as they may.
class KeptPipelines {
 public:
  explicit KeptPipelines(const vk::DeviceDescription& real);
  ~KeptPipelines();
  KeptPipelines(const KeptPipelines&) = delete;
  KeptPipelines& operator=(const KeptPipelines&) = delete;

  void made(VkShaderModule module, const VkShaderModuleCreateInfo& info);
  VkPipeline find(VkShaderModule module) const;  // null: not made yet
  void keep(VkShaderModule module, VkPipeline pipeline);

 private:
  VkDevice device_;
  PFN_vkDestroyPipeline destroy_;
  mutable std::mutex mutex_;
  std::map<VkShaderModule, std::string> shaders_;
  std::map<std::string, VkPipeline> pipelines_;
};

// Vulkan's functions carry no user pointer, so there is one at a time: the newest that lives.
class FaultShim {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // The device as `real` describes it, but reached through the shim.
  FaultShim(const vk::DeviceDescription& real, KeptPipelines& pipelines);
  ~FaultShim();
  FaultShim(const FaultShim&) = delete;
  FaultShim& operator=(const FaultShim&) = delete;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const;

  // The number-th call from now on that may fail this way gives `fault` instead of reaching the driver; one
  // of VK_ERROR_DEVICE_LOST does for good, and lets the device stand still first, as one that is really lost
  // does.
  void fail(std::uint64_t number, VkResult fault);
  void lose() { fail(1, VK_ERROR_DEVICE_LOST); }

  std::uint64_t calls() const;  // that may fail this way, all in all
  bool failed() const;          // the chosen call was made
  std::string failed_call() const;
  // Calls, but those that only destroy, on a thread that knows of the loss: it was answered with it, or told
  // by us. Told: what the thread that calls it was just given by a function of ours.
  std::uint64_t touches_after_loss() const;
  void told();
  std::string first_touch() const;
  // The first such call of each other thread since the game was told. Only one whose thread looked, found the
  // device well, and slept for longer than we wait for it before we tell.
  std::uint64_t late_calls() const;
  std::map<std::string, std::int64_t> alive() const;  // what was made and not destroyed, by kind
  std::string alive_text() const;                     // "" when nothing is

  // ---- for the functions in between ----
  bool before(const char* name, bool returns_result, VkResult& fault);
  void after(const char* name, VkResult result, bool passed = true);  // passed: what `before` said
  KeptPipelines& pipelines() { return pipelines_; }
  PFN_vkVoidFunction real_instance_function(VkInstance instance, const char* name) const {
    return real_(instance, name);
  }
  PFN_vkVoidFunction real_device_function(VkDevice device, const char* name) const {
    return get_device_(device, name);
  }

 private:
  PFN_vkGetInstanceProcAddr real_;
  PFN_vkGetDeviceProcAddr get_device_;
  PFN_vkDeviceWaitIdle wait_idle_;
  VkDevice device_;
  KeptPipelines& pipelines_;
  mutable std::mutex mutex_;
  std::condition_variable no_use_;
  std::uint64_t calls_ = 0, fail_at_ = kNever, touches_ = 0, late_ = 0,
                uses_ = 0;  // uses_: of the queue, under way
  VkResult fault_ = VK_SUCCESS;
  bool failed_ = false, lost_ = false, told_ = false;
  std::set<std::thread::id> knows_;
  std::string failed_call_, first_touch_;
  std::map<std::string, std::int64_t> alive_;
};

}  // namespace imprint::bridge

#pragma once
// A shim between Imprint and the driver, like a layer: it makes one chosen call fail, and counts what is
// created and destroyed.

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

// Compute pipelines by shader, kept over many games on one device, so that a slow compiler runs once for
// each. Pipelines may outlive their layouts.
class KeptPipelines {
 public:
  explicit KeptPipelines(const vk::DeviceDescription& real);
  ~KeptPipelines();
  KeptPipelines(const KeptPipelines&) = delete;
  KeptPipelines& operator=(const KeptPipelines&) = delete;

  void made(VkShaderModule module, const VkShaderModuleCreateInfo& info);
  VkPipeline find(VkShaderModule module) const;  // null: not created yet
  void keep(VkShaderModule module, VkPipeline pipeline);

 private:
  VkDevice device_;
  PFN_vkDestroyPipeline destroy_;
  mutable std::mutex mutex_;
  std::map<VkShaderModule, std::string> shaders_;
  std::map<std::string, VkPipeline> pipelines_;
};

// Only the newest is active: Vulkan's functions have no user pointer.
class FaultShim {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // The device of `real`, reached through the shim.
  FaultShim(const vk::DeviceDescription& real, KeptPipelines& pipelines);
  ~FaultShim();
  FaultShim(const FaultShim&) = delete;
  FaultShim& operator=(const FaultShim&) = delete;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const;

  // From now on, the number-th call that may fail this way returns `fault` and does not reach the driver.
  // After VK_ERROR_DEVICE_LOST all later calls fail too, and the device is idle first, as a lost one is.
  void fail(std::uint64_t number, VkResult fault);
  void lose() { fail(1, VK_ERROR_DEVICE_LOST); }

  std::uint64_t calls() const;  // that may fail this way, in total
  bool failed() const;          // the chosen call has failed
  std::string failed_call() const;
  // Calls that do more than destroy, on a thread that knows of the loss: a call returned it, or Imprint told
  // it.
  std::uint64_t touches_after_loss() const;
  void told();
  std::string first_touch() const;
  // The first such call of each other thread after the game was told. Possible only where a thread checked
  // the device before the loss and then slept longer than Imprint waits for it.
  std::uint64_t late_calls() const;
  std::map<std::string, std::int64_t> alive() const;  // created and not destroyed, by kind
  std::string alive_text() const;                     // empty: nothing

  // ---- for the intercepted functions ----
  bool before(const char* name, bool returns_result, VkResult& fault);
  void after(const char* name, VkResult result, bool passed = true);  // passed: the result of `before`
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
                uses_ = 0;  // uses_: queue calls that are running
  VkResult fault_ = VK_SUCCESS;
  bool failed_ = false, lost_ = false, told_ = false;
  std::set<std::thread::id> knows_;
  std::string failed_call_, first_touch_;
  std::map<std::string, std::int64_t> alive_;
};

}  // namespace imprint::bridge

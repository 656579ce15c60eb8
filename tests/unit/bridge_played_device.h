#pragma once
// A fake device with the few functions that submitting and waiting need.

#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compute/vk/device.h"

namespace imprint::bridge::played {

template <class T>
T handle(std::uintptr_t value) {
  return reinterpret_cast<T>(value);
}

// The fake driver's state. Global, since Vulkan's functions have no user pointer.
struct Driver {
  std::set<VkFence> signalled;
  std::vector<VkFence> submitted_fences;
  std::vector<std::uint64_t> signal_values;
  std::uint64_t counter = 0;
  std::uintptr_t next_handle = 100;
  int fences = 0, semaphores = 0, resets = 0, waits = 0;
  VkResult submit_result = VK_SUCCESS, wait_result = VK_SUCCESS;
  std::vector<std::string> calls;
};
inline Driver* driver = nullptr;

inline VkResult VKAPI_CALL create_fence(VkDevice, const VkFenceCreateInfo*, const VkAllocationCallbacks*,
                                        VkFence* fence) {
  *fence = handle<VkFence>(driver->next_handle++);
  ++driver->fences;
  return VK_SUCCESS;
}
inline void VKAPI_CALL destroy_fence(VkDevice, VkFence, const VkAllocationCallbacks*) { --driver->fences; }
inline VkResult VKAPI_CALL reset_fences(VkDevice, std::uint32_t, const VkFence* fences) {
  driver->signalled.erase(fences[0]);
  ++driver->resets;
  return VK_SUCCESS;
}
inline VkResult VKAPI_CALL fence_status(VkDevice, VkFence fence) {
  return driver->signalled.contains(fence) ? VK_SUCCESS : VK_NOT_READY;
}
inline VkResult VKAPI_CALL wait_fences(VkDevice, std::uint32_t, const VkFence* fences, VkBool32,
                                       std::uint64_t) {
  ++driver->waits;
  if (driver->wait_result == VK_SUCCESS) driver->signalled.insert(fences[0]);
  return driver->wait_result;
}
inline VkResult VKAPI_CALL create_semaphore(VkDevice, const VkSemaphoreCreateInfo*,
                                            const VkAllocationCallbacks*, VkSemaphore* semaphore) {
  *semaphore = handle<VkSemaphore>(driver->next_handle++);
  ++driver->semaphores;
  return VK_SUCCESS;
}
inline void VKAPI_CALL destroy_semaphore(VkDevice, VkSemaphore, const VkAllocationCallbacks*) {
  --driver->semaphores;
}
inline VkResult VKAPI_CALL counter_value(VkDevice, VkSemaphore, std::uint64_t* value) {
  *value = driver->counter;
  return VK_SUCCESS;
}
inline VkResult VKAPI_CALL wait_semaphores(VkDevice, const VkSemaphoreWaitInfo* info, std::uint64_t) {
  ++driver->waits;
  if (driver->wait_result == VK_SUCCESS) driver->counter = info->pValues[0];
  return driver->wait_result;
}
inline VkResult VKAPI_CALL queue_submit(VkQueue, std::uint32_t, const VkSubmitInfo* submits, VkFence fence) {
  driver->calls.push_back("submit");
  if (driver->submit_result != VK_SUCCESS) return driver->submit_result;
  driver->submitted_fences.push_back(fence);
  if (submits[0].pNext) {
    const auto* timeline = static_cast<const VkTimelineSemaphoreSubmitInfo*>(submits[0].pNext);
    driver->signal_values.push_back(timeline->pSignalSemaphoreValues[0]);
  }
  return VK_SUCCESS;
}

class PlayedDevice final : public vk::Device {
 public:
  explicit PlayedDevice(bool timeline) {
    capabilities_.timeline_semaphore = timeline;
    functions_.vkCreateFence = create_fence;
    functions_.vkDestroyFence = destroy_fence;
    functions_.vkResetFences = reset_fences;
    functions_.vkGetFenceStatus = fence_status;
    functions_.vkWaitForFences = wait_fences;
    functions_.vkCreateSemaphore = create_semaphore;
    functions_.vkDestroySemaphore = destroy_semaphore;
    functions_.vkGetSemaphoreCounterValue = counter_value;
    functions_.vkWaitSemaphores = wait_semaphores;
    functions_.vkQueueSubmit = queue_submit;
  }
  const vk::Functions& functions() const override { return functions_; }
  VkDevice handle() const override { return played::handle<VkDevice>(1); }
  VkPhysicalDevice physical_device() const override { return VK_NULL_HANDLE; }
  const VkAllocationCallbacks* allocation_callbacks() const override { return nullptr; }
  std::uint32_t queue_family() const override { return 0; }
  const vk::Capabilities& capabilities() const override { return capabilities_; }
  const std::vector<vk::MissingFeature>& missing_features() const override { return missing_features_; }
  const vk::DeviceOptions& options() const override { return options_; }
  vk::MemoryPool& memory() override { throw std::logic_error("not played"); }
  vk::PipelineStore& pipelines() override { throw std::logic_error("not played"); }
  vk::Counters& counters() override { return counters_; }
  vk::Completion& completion() override { return completion_; }
  vk::Ticket last_ticket() const override { return completion_.last(); }
  bool is_complete(vk::Ticket ticket) override { return completion_.poll() >= ticket; }
  void retire(vk::Ticket ticket, std::function<void()> destroy) override {
    completion_.retire(ticket, std::move(destroy));
  }
  void collect() override { completion_.collect(); }
  void mark_lost() override { lost_ = true; }
  bool lost() const override { return lost_; }

 private:
  vk::Functions functions_;
  vk::Capabilities capabilities_;
  std::vector<vk::MissingFeature> missing_features_;
  vk::DeviceOptions options_;
  vk::Counters counters_;
  vk::Completion completion_;
  std::atomic<bool> lost_{false};  // a submit thread may set it
};

}  // namespace imprint::bridge::played

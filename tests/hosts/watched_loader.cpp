#include "tests/hosts/watched_loader.h"

#include <atomic>
#include <cstring>

namespace imprint::hosts {
namespace {

PFN_vkGetInstanceProcAddr host_instance_loader = nullptr;
PFN_vkGetDeviceProcAddr host_device_loader = nullptr;
PFN_vkDeviceWaitIdle device_wait_idle = nullptr;
PFN_vkQueueWaitIdle queue_wait_idle = nullptr;
PFN_vkGetDeviceQueue get_device_queue = nullptr;
PFN_vkGetDeviceQueue2 get_device_queue2 = nullptr;
PFN_vkCreateSemaphore create_semaphore = nullptr;
PFN_vkQueueSubmit queue_submit = nullptr;
PFN_vkQueueSubmit2 queue_submit2 = nullptr;
std::atomic<std::uint64_t> idle_waits, queues, timelines, submissions;

VKAPI_ATTR VkResult VKAPI_CALL on_device_wait_idle(VkDevice device) {
  return ++idle_waits, device_wait_idle(device);
}

VKAPI_ATTR VkResult VKAPI_CALL on_queue_wait_idle(VkQueue queue) {
  return ++idle_waits, queue_wait_idle(queue);
}

VKAPI_ATTR void VKAPI_CALL on_get_device_queue(VkDevice device, std::uint32_t family, std::uint32_t index,
                                               VkQueue* queue) {
  ++queues, get_device_queue(device, family, index, queue);
}

VKAPI_ATTR void VKAPI_CALL on_get_device_queue2(VkDevice device, const VkDeviceQueueInfo2* info,
                                                VkQueue* queue) {
  ++queues, get_device_queue2(device, info, queue);
}

VKAPI_ATTR VkResult VKAPI_CALL on_create_semaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                                   const VkAllocationCallbacks* allocator,
                                                   VkSemaphore* semaphore) {
  for (auto* next = static_cast<const VkBaseInStructure*>(info->pNext); next; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO &&
        reinterpret_cast<const VkSemaphoreTypeCreateInfo*>(next)->semaphoreType ==
            VK_SEMAPHORE_TYPE_TIMELINE) {
      ++timelines;
    }
  }
  return create_semaphore(device, info, allocator, semaphore);
}

VKAPI_ATTR VkResult VKAPI_CALL on_queue_submit(VkQueue queue, std::uint32_t count,
                                               const VkSubmitInfo* submits, VkFence fence) {
  return ++submissions, queue_submit(queue, count, submits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL on_queue_submit2(VkQueue queue, std::uint32_t count,
                                                const VkSubmitInfo2* submits, VkFence fence) {
  return ++submissions, queue_submit2(queue, count, submits, fence);
}

PFN_vkVoidFunction watched(const char* name, PFN_vkVoidFunction real);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_loader(VkDevice device, const char* name) {
  return watched(name, host_device_loader(device, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_loader(VkInstance instance, const char* name) {
  return watched(name, host_instance_loader(instance, name));
}

template <class Function>
bool replace(const char* name, const char* asked, PFN_vkVoidFunction& found, Function& real, Function ours) {
  if (std::strcmp(name, asked) != 0) return false;
  real = reinterpret_cast<Function>(found);
  found = reinterpret_cast<PFN_vkVoidFunction>(ours);
  return true;
}

PFN_vkVoidFunction watched(const char* name, PFN_vkVoidFunction found) {
  if (!found) return nullptr;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(instance_loader);
  const bool is_watched =
      replace("vkGetDeviceProcAddr", name, found, host_device_loader, device_loader) ||
      replace("vkDeviceWaitIdle", name, found, device_wait_idle, on_device_wait_idle) ||
      replace("vkQueueWaitIdle", name, found, queue_wait_idle, on_queue_wait_idle) ||
      replace("vkGetDeviceQueue", name, found, get_device_queue, on_get_device_queue) ||
      replace("vkGetDeviceQueue2", name, found, get_device_queue2, on_get_device_queue2) ||
      replace("vkCreateSemaphore", name, found, create_semaphore, on_create_semaphore) ||
      replace("vkQueueSubmit", name, found, queue_submit, on_queue_submit) ||
      replace("vkQueueSubmit2", name, found, queue_submit2, on_queue_submit2) ||
      replace("vkQueueSubmit2KHR", name, found, queue_submit2, on_queue_submit2);
  (void)is_watched;
  return found;
}

}  // namespace

PFN_vkGetInstanceProcAddr watch(PFN_vkGetInstanceProcAddr host_loader) {
  host_instance_loader = host_loader;
  idle_waits = queues = timelines = submissions = 0;
  return instance_loader;
}

GuestCalls guest_calls() { return {idle_waits, queues, timelines, submissions}; }

}  // namespace imprint::hosts

#include "engine-bridge/own/own_copy_queue.h"

#include <utility>

namespace imprint::bridge {

OwnCopyQueue::OwnCopyQueue(vk::Device& device, HostQueue& main)
    : device_(device), functions_(device.functions()), handle_(device.handle()), main_(main) {}

Result<std::unique_ptr<OwnCopyQueue>> OwnCopyQueue::create(vk::Device& device, HostQueue& main,
                                                           std::uint32_t family,
                                                           const std::array<VkQueue, 2>& queues) {
  std::unique_ptr<OwnCopyQueue> made(new OwnCopyQueue(device, main));
  const vk::Functions& f = made->functions_;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
    made->lines_[i].queue = queues[i];
    if (const VkResult result = f.vkCreateSemaphore(made->handle_, &info, nullptr, &made->lines_[i].timeline);
        result != VK_SUCCESS)
      return made->error("vkCreateSemaphore", result);
  }
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = family;
  if (const VkResult result = f.vkCreateCommandPool(made->handle_, &pool, nullptr, &made->pool_);
      result != VK_SUCCESS)
    return made->error("vkCreateCommandPool", result);
  return made;
}

OwnCopyQueue::~OwnCopyQueue() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  for (const Line& each : lines_) {
    if (each.timeline == VK_NULL_HANDLE) continue;
    if (each.newest > 0) (void)wait_for(each, each.newest, kSecond);
    functions_.vkDestroySemaphore(handle_, each.timeline, nullptr);
  }
  if (pool_) functions_.vkDestroyCommandPool(handle_, pool_, nullptr);
}

Result<VkCommandBuffer> OwnCopyQueue::record(const std::function<void(VkCommandBuffer)>& body) {
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  if (const VkResult result = functions_.vkAllocateCommandBuffers(handle_, &info, &commands);
      result != VK_SUCCESS)
    return error("vkAllocateCommandBuffers", result);
  // A caller may know by an event that the commands are complete, which validation layers do not track.
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  VkResult result = functions_.vkBeginCommandBuffer(commands, &begin);
  if (result == VK_SUCCESS) {
    body(commands);
    result = functions_.vkEndCommandBuffer(commands);
  }
  if (result == VK_SUCCESS) return commands;
  free(commands);
  return error("vkEndCommandBuffer", result);
}

void OwnCopyQueue::free(VkCommandBuffer commands) {
  functions_.vkFreeCommandBuffers(handle_, pool_, 1, &commands);
}

Result<std::uint64_t> OwnCopyQueue::submit(Direction direction, VkCommandBuffer commands) {
  Line& used = line(direction);
  const std::uint64_t point = used.newest + 1;
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &point;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &used.timeline;
  if (const VkResult result = functions_.vkQueueSubmit(used.queue, 1, &info, VK_NULL_HANDLE);
      result != VK_SUCCESS)
    return error("vkQueueSubmit", result);
  return used.newest = point;
}

Result<bool> OwnCopyQueue::is_complete(Direction direction, std::uint64_t point) {
  std::uint64_t reached = 0;
  if (const VkResult result =
          functions_.vkGetSemaphoreCounterValue(handle_, line(direction).timeline, &reached);
      result != VK_SUCCESS)
    return error("vkGetSemaphoreCounterValue", result);
  return reached >= point;
}

VkResult OwnCopyQueue::wait_for(const Line& waited, std::uint64_t point, std::uint64_t timeout_ns) const {
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &waited.timeline;
  info.pValues = &point;
  return functions_.vkWaitSemaphores(handle_, &info, timeout_ns);
}

Result<> OwnCopyQueue::wait(Direction direction, std::uint64_t point, std::uint64_t timeout_ns) {
  const VkResult result = wait_for(line(direction), point, timeout_ns);
  if (result == VK_SUCCESS) return {};
  if (result == VK_TIMEOUT)
    return make_error(ErrorCode::not_ready, "wait: the GPU has not finished its copies");
  return error("vkWaitSemaphores", result);
}

Result<vk::Ticket> OwnCopyQueue::submit_after_copies(VkCommandBuffer commands) {
  const Line& copied = line(Direction::to_device);
  const HostSemaphore wait{copied.timeline, true, copied.newest};
  return main_.submit(std::span(&commands, 1), std::span(&wait, copied.newest > 0 ? 1u : 0u), {});
}

}  // namespace imprint::bridge

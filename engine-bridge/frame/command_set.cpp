#include "engine-bridge/frame/command_set.h"

#include "compute/vk/barrier.h"

namespace imprint::bridge {

void record_global_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer) {
  vk::memory_barrier(functions, command_buffer, vk::our_writes(vk::kWorkStages),
                     vk::our_accesses(vk::kWorkStages));
}

void record_entry_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer,
                          const HostUse& host) {
  vk::memory_barrier(functions, command_buffer, {host.stages, host.access, false},
                     vk::our_accesses(vk::kWorkStages));
}

void record_exit_barrier(const vk::Functions& functions, VkCommandBuffer command_buffer,
                         const HostUse& host) {
  const vk::Scope after{vk::kWorkStages | VK_PIPELINE_STAGE_HOST_BIT | host.stages,
                        VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT, false};
  vk::memory_barrier(functions, command_buffer, vk::our_writes(vk::kWorkStages), after);
}

Result<std::unique_ptr<CommandSet>> CommandSet::create(vk::Device& device) {
  std::unique_ptr<CommandSet> set(new CommandSet(device));
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.queueFamilyIndex = device.queue_family();
  const VkResult result = device.functions().vkCreateCommandPool(device.handle(), &info,
                                                                 device.allocation_callbacks(), &set->pool_);
  if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkCreateCommandPool", result);
  return set;
}

CommandSet::~CommandSet() {
  if (pool_)
    device_.functions().vkDestroyCommandPool(device_.handle(), pool_, device_.allocation_callbacks());
}

void CommandSet::retire(const Commands& commands) {
  if (!commands.primary) return;
  device_.retire(device_.last_ticket(), [this, commands] { free(commands); });
}

void CommandSet::free(const Commands& commands) {
  for (const VkCommandBuffer buffer : {commands.primary, commands.secondary})
    if (buffer) device_.functions().vkFreeCommandBuffers(device_.handle(), pool_, 1, &buffer);
}

Result<Commands> CommandSet::record(bool shared, const std::function<void(VkCommandBuffer)>& content) {
  Commands commands;
  IMPRINT_ASSIGN(commands.primary, record(VK_COMMAND_BUFFER_LEVEL_PRIMARY, shared, content));
  Result<VkCommandBuffer> secondary = record(VK_COMMAND_BUFFER_LEVEL_SECONDARY, shared, content);
  if (!secondary.ok()) {
    free(commands);
    return secondary.error();
  }
  commands.secondary = *secondary;
  return commands;
}

Result<VkCommandBuffer> CommandSet::record(VkCommandBufferLevel level, bool shared,
                                           const std::function<void(VkCommandBuffer)>& content) {
  const vk::Functions& f = device_.functions();
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = level;
  allocate.commandBufferCount = 1;
  VkCommandBuffer command_buffer = VK_NULL_HANDLE;
  VkResult result = f.vkAllocateCommandBuffers(device_.handle(), &allocate, &command_buffer);
  if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkAllocateCommandBuffers", result);

  const VkCommandBufferInheritanceInfo inheritance{VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  if (shared) begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  if (level == VK_COMMAND_BUFFER_LEVEL_SECONDARY) begin.pInheritanceInfo = &inheritance;
  const char* call = "vkBeginCommandBuffer";
  result = f.vkBeginCommandBuffer(command_buffer, &begin);
  if (result == VK_SUCCESS) {
    content(command_buffer);
    call = "vkEndCommandBuffer";
    result = f.vkEndCommandBuffer(command_buffer);
  }
  if (result == VK_SUCCESS) return command_buffer;
  free({command_buffer, VK_NULL_HANDLE});
  return vk::vulkan_error(device_, call, result);
}

}  // namespace imprint::bridge

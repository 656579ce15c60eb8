#include "compute/vk/barrier.h"

namespace imprint::vk {
namespace {

// Imprint's own scopes have only these stages. The classic bits have the same numbers in both forms.
VkPipelineStageFlags2 exact_stages(const Scope& scope) {
  VkPipelineStageFlags2 stages = scope.stages;
  if (scope.ours && (stages & VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT)) {
    stages &= ~VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
    stages |= VK_PIPELINE_STAGE_2_COPY_BIT | VK_PIPELINE_STAGE_2_CLEAR_BIT;
  }
  return stages;
}

VkAccessFlags2 exact_access(const Scope& scope) {
  VkAccessFlags2 access = scope.access;
  if (!scope.ours) return access;
  if (access & VK_ACCESS_2_SHADER_READ_BIT)
    access = (access & ~VK_ACCESS_2_SHADER_READ_BIT) | VK_ACCESS_2_SHADER_STORAGE_READ_BIT;
  if (access & VK_ACCESS_2_SHADER_WRITE_BIT)
    access = (access & ~VK_ACCESS_2_SHADER_WRITE_BIT) | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  return access;
}

template <class Barrier>
void fill_scopes(Barrier& barrier, const Scope& before, const Scope& after) {
  barrier.srcStageMask = exact_stages(before);
  barrier.srcAccessMask = exact_access(before);
  barrier.dstStageMask = exact_stages(after);
  barrier.dstAccessMask = exact_access(after);
}

template <class Barrier>
void fill_handover(Barrier& barrier, const Handover& handover) {
  barrier.buffer = handover.buffer;
  barrier.offset = handover.offset;
  barrier.size = handover.size;
  barrier.srcQueueFamilyIndex = handover.from_family;
  barrier.dstQueueFamilyIndex = handover.to_family;
}

}  // namespace

// No wider than the stages need. For an access that compute does not make, some devices flush more than
// compute's caches.
Scope our_writes(VkPipelineStageFlags stages) {
  Scope scope{stages, 0};
  if (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) scope.access |= VK_ACCESS_SHADER_WRITE_BIT;
  if (stages & VK_PIPELINE_STAGE_TRANSFER_BIT) scope.access |= VK_ACCESS_TRANSFER_WRITE_BIT;
  return scope;
}

Scope our_accesses(VkPipelineStageFlags stages) {
  Scope scope{stages, 0};
  if (stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
    scope.access |= VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;
  if (stages & VK_PIPELINE_STAGE_TRANSFER_BIT)
    scope.access |= VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  if (stages & VK_PIPELINE_STAGE_HOST_BIT) scope.access |= VK_ACCESS_HOST_READ_BIT;
  return scope;
}

void memory_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                    const Scope& after) {
  if (functions.vkCmdPipelineBarrier2) {
    VkMemoryBarrier2 barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
    fill_scopes(barrier, before, after);
    VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &barrier;
    functions.vkCmdPipelineBarrier2(commands, &info);
    return;
  }
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = before.access;
  barrier.dstAccessMask = after.access;
  functions.vkCmdPipelineBarrier(commands, before.stages, after.stages, 0, 1, &barrier, 0, nullptr, 0,
                                 nullptr);
}

void handover_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                      const Scope& after, const Handover& handover) {
  if (functions.vkCmdPipelineBarrier2) {
    VkBufferMemoryBarrier2 barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2};
    fill_scopes(barrier, before, after);
    fill_handover(barrier, handover);
    VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
    info.bufferMemoryBarrierCount = 1;
    info.pBufferMemoryBarriers = &barrier;
    functions.vkCmdPipelineBarrier2(commands, &info);
    return;
  }
  VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
  barrier.srcAccessMask = before.access;
  barrier.dstAccessMask = after.access;
  fill_handover(barrier, handover);
  functions.vkCmdPipelineBarrier(commands, before.stages, after.stages, 0, 0, nullptr, 1, &barrier, 0,
                                 nullptr);
}

}  // namespace imprint::vk

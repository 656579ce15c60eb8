#pragma once
// Memory barriers, in the form that the device supports. The classic form has one pair of stage masks for
// everything and only coarse accesses. synchronization2 names Imprint's own accesses exactly: storage
// buffers, copies and fills, each with its own stage.

#include <vulkan/vulkan_core.h>

#include "compute/vk/functions.h"

namespace imprint::vk {

// One side of a barrier.
struct Scope {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
  bool ours = true;  // only kernels, copies and fills; false: whatever a host declared
};

// The writes of Imprint's kernels and transfers, and all their accesses.
Scope our_writes(VkPipelineStageFlags stages);
Scope our_accesses(VkPipelineStageFlags stages);
inline constexpr VkPipelineStageFlags kWorkStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

void memory_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                    const Scope& after);

// Moves a range of a buffer from one queue family to another.
struct Handover {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, size = 0;
  std::uint32_t from_family = 0, to_family = 0;
};
void handover_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                      const Scope& after, const Handover& handover);

}  // namespace imprint::vk

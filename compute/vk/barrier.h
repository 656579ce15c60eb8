#pragma once
// Memory barriers, in the form that the device allows. The classic one has one pair of stage masks for
// everything and knows accesses only in bulk; with synchronization2 what we do ourselves is named exactly:
// storage buffers, copies and fills, each with its own stage.

#include <vulkan/vulkan_core.h>

#include "compute/vk/functions.h"

namespace imprint::vk {

// One side of a barrier.
struct Scope {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
  bool ours = true;  // nothing but kernels, copies and fills; false: whatever a host has declared
};

// What kernels and transfers of ours write, and all that they do.
Scope our_writes(VkPipelineStageFlags stages);
Scope our_accesses(VkPipelineStageFlags stages);
inline constexpr VkPipelineStageFlags kWorkStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

void memory_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                    const Scope& after);

// A range of a buffer passes from one queue family to another.
struct Handover {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, size = 0;
  std::uint32_t from_family = 0, to_family = 0;
};
void handover_barrier(const Functions& functions, VkCommandBuffer commands, const Scope& before,
                      const Scope& after, const Handover& handover);

}  // namespace imprint::vk

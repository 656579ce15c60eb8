#pragma once
// The Vulkan functions that Imprint calls, one table per device, filled through the host's
// vkGetInstanceProcAddr. No globals.

#include <vulkan/vulkan_core.h>

#include "compute/base/result.h"
#include "compute/vk/capabilities/newer_vulkan.h"

// Every instance and device of Vulkan 1.1 must have these.
#define IMPRINT_VK_INSTANCE_FUNCTIONS(X)      \
  X(vkGetDeviceProcAddr)                      \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)
// Null when no driver knows the extension. Used only to read capabilities.
#define IMPRINT_VK_OPTIONAL_INSTANCE_FUNCTIONS(X)      \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesNV)  \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  X(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV)
#define IMPRINT_VK_DEVICE_FUNCTIONS(X) \
  X(vkAllocateMemory)                  \
  X(vkFreeMemory)                      \
  X(vkMapMemory)                       \
  X(vkUnmapMemory)                     \
  X(vkCreateBuffer)                    \
  X(vkDestroyBuffer)                   \
  X(vkBindBufferMemory)                \
  X(vkGetBufferMemoryRequirements)     \
  X(vkCreateShaderModule)              \
  X(vkDestroyShaderModule)             \
  X(vkCreateComputePipelines)          \
  X(vkDestroyPipeline)                 \
  X(vkCreatePipelineLayout)            \
  X(vkDestroyPipelineLayout)           \
  X(vkCreatePipelineCache)             \
  X(vkDestroyPipelineCache)            \
  X(vkGetPipelineCacheData)            \
  X(vkMergePipelineCaches)             \
  X(vkCreateDescriptorSetLayout)       \
  X(vkDestroyDescriptorSetLayout)      \
  X(vkCreateDescriptorPool)            \
  X(vkDestroyDescriptorPool)           \
  X(vkAllocateDescriptorSets)          \
  X(vkUpdateDescriptorSets)            \
  X(vkCreateCommandPool)               \
  X(vkDestroyCommandPool)              \
  X(vkResetCommandPool)                \
  X(vkAllocateCommandBuffers)          \
  X(vkFreeCommandBuffers)              \
  X(vkBeginCommandBuffer)              \
  X(vkEndCommandBuffer)                \
  X(vkResetCommandBuffer)              \
  X(vkCmdBindPipeline)                 \
  X(vkCmdBindDescriptorSets)           \
  X(vkCmdPushConstants)                \
  X(vkCmdDispatch)                     \
  X(vkCmdPipelineBarrier)              \
  X(vkCmdCopyBuffer)                   \
  X(vkCmdFillBuffer)                   \
  X(vkCmdUpdateBuffer)                 \
  X(vkCmdExecuteCommands)              \
  X(vkCmdResetQueryPool)               \
  X(vkCmdWriteTimestamp)               \
  X(vkCreateQueryPool)                 \
  X(vkDestroyQueryPool)                \
  X(vkGetQueryPoolResults)             \
  X(vkCreateFence)                     \
  X(vkDestroyFence)                    \
  X(vkResetFences)                     \
  X(vkGetFenceStatus)                  \
  X(vkWaitForFences)                   \
  X(vkCreateSemaphore)                 \
  X(vkDestroySemaphore)                \
  X(vkQueueSubmit)
// Null unless Capabilities has the feature (Device::adopt), so a non-null function may be called.
#define IMPRINT_VK_OPTIONAL_DEVICE_FUNCTIONS(X) \
  X(vkGetSemaphoreCounterValue)                 \
  X(vkWaitSemaphores)                           \
  X(vkSignalSemaphore)                          \
  X(vkQueueSubmit2)                             \
  X(vkCmdPipelineBarrier2)                      \
  X(vkResetQueryPool)                           \
  X(vkSetDebugUtilsObjectNameEXT)               \
  X(vkCmdBeginDebugUtilsLabelEXT)               \
  X(vkCmdEndDebugUtilsLabelEXT)                 \
  X(vkQueueBeginDebugUtilsLabelEXT)             \
  X(vkQueueEndDebugUtilsLabelEXT)

namespace imprint::vk {

struct Capabilities;

struct Functions {
#define X(name) PFN_##name name = nullptr;
  IMPRINT_VK_INSTANCE_FUNCTIONS(X)
  IMPRINT_VK_OPTIONAL_INSTANCE_FUNCTIONS(X)
  IMPRINT_VK_DEVICE_FUNCTIONS(X)
  IMPRINT_VK_OPTIONAL_DEVICE_FUNCTIONS(X)
#undef X
};

// Fills the table. Functions promoted from an extension are also looked for under their KHR or EXT name.
// Errors: invalid_argument naming the first required function that the loader does not return.
Result<Functions> load_functions(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance,
                                 VkDevice device);

// Clears functions whose feature was not declared: many loaders return every function of the core version.
void drop_undeclared(Functions& functions, const Capabilities& capabilities);

}  // namespace imprint::vk

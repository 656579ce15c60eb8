#pragma once
// As much of Unity's interface as samples/adapters/unity.h uses, for compiling it: names and types, no more.

#include <vulkan/vulkan.h>

struct UnityVulkanInstance {
  VkPipelineCache pipelineCache;
  VkInstance instance;
  VkPhysicalDevice physicalDevice;
  VkDevice device;
  VkQueue graphicsQueue;
  PFN_vkGetInstanceProcAddr getInstanceProcAddr;
  unsigned int queueFamilyIndex;
};

struct UnityVulkanRecordingState {
  VkCommandBuffer commandBuffer;
  VkCommandBufferLevel commandBufferLevel;
  VkRenderPass renderPass;
  unsigned long long currentFrameNumber;
  unsigned long long safeFrameNumber;
};

struct IUnityGraphicsVulkan {
  UnityVulkanInstance (*Instance)();
};

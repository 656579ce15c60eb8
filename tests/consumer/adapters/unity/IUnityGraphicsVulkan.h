#pragma once
// The part of Unity's interface that samples/adapters/unity.h compiles against: names and types only.

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

#pragma once
// What the hosts here draw: a picture that depends on the time and on where the pet is, and on nothing else. Its functions come from the host's own
// vkGetDeviceProcAddr, so it works with whatever loader the host has.

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <cstdint>

#include "tests/hosts/pupil.h"

namespace imprint::hosts {

class Scene {
 public:
  // False when Vulkan refused something.
  bool make(PFN_vkGetDeviceProcAddr load, VkDevice device, VkRenderPass render_pass);
  void destroy();

  // Graphics state that draw relies on. A host may set it long before its render pass begins, and before its guest records.
  void bind(VkCommandBuffer commands, VkExtent2D extent) const;
  void draw(VkCommandBuffer commands, float time_s, Place pet) const;  // within the render pass

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  PFN_vkCreateShaderModule create_shader_module_ = nullptr;
  PFN_vkDestroyShaderModule destroy_shader_module_ = nullptr;
  PFN_vkCreatePipelineLayout create_pipeline_layout_ = nullptr;
  PFN_vkDestroyPipelineLayout destroy_pipeline_layout_ = nullptr;
  PFN_vkCreateGraphicsPipelines create_graphics_pipelines_ = nullptr;
  PFN_vkDestroyPipeline destroy_pipeline_ = nullptr;
  PFN_vkCmdBindPipeline bind_pipeline_ = nullptr;
  PFN_vkCmdSetViewport set_viewport_ = nullptr;
  PFN_vkCmdSetScissor set_scissor_ = nullptr;
  PFN_vkCmdPushConstants push_constants_ = nullptr;
  PFN_vkCmdDraw draw_ = nullptr;
};

}  // namespace imprint::hosts

#include "tests/hosts/scene.h"

#include <cstddef>

#include "scene_frag.h"
#include "scene_vert.h"

namespace imprint::hosts {
namespace {

constexpr std::uint32_t kTriangles = 32;  // the last is the pet
constexpr std::uint32_t kPushBytes = 16;

template <class Function>
bool find(PFN_vkGetDeviceProcAddr load, VkDevice device, const char* name, Function& function) {
  function = reinterpret_cast<Function>(load(device, name));
  return function != nullptr;
}

}  // namespace

bool Scene::make(PFN_vkGetDeviceProcAddr load, VkDevice device, VkRenderPass render_pass) {
  device_ = device;
  if (!find(load, device, "vkCreateShaderModule", create_shader_module_) || !find(load, device, "vkDestroyShaderModule", destroy_shader_module_) ||
      !find(load, device, "vkCreatePipelineLayout", create_pipeline_layout_) ||
      !find(load, device, "vkDestroyPipelineLayout", destroy_pipeline_layout_) ||
      !find(load, device, "vkCreateGraphicsPipelines", create_graphics_pipelines_) || !find(load, device, "vkDestroyPipeline", destroy_pipeline_) ||
      !find(load, device, "vkCmdBindPipeline", bind_pipeline_) || !find(load, device, "vkCmdSetViewport", set_viewport_) ||
      !find(load, device, "vkCmdSetScissor", set_scissor_) || !find(load, device, "vkCmdPushConstants", push_constants_) ||
      !find(load, device, "vkCmdDraw", draw_)) {
    return false;
  }
  VkShaderModule modules[2] = {};
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = sizeof scene_vert;
  code.pCode = scene_vert;
  VkResult result = create_shader_module_(device, &code, nullptr, &modules[0]);
  code.codeSize = sizeof scene_frag;
  code.pCode = scene_frag;
  if (result == VK_SUCCESS) result = create_shader_module_(device, &code, nullptr, &modules[1]);

  const VkPushConstantRange range{VK_SHADER_STAGE_VERTEX_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  if (result == VK_SUCCESS) result = create_pipeline_layout_(device, &layout, nullptr, &layout_);

  VkPipelineShaderStageCreateInfo stages[2] = {{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO},
                                               {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO}};
  stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
  stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
  for (std::size_t i = 0; i < 2; ++i) stages[i].module = modules[i], stages[i].pName = "main";
  VkPipelineVertexInputStateCreateInfo vertices{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  VkPipelineInputAssemblyStateCreateInfo assembly{VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  VkPipelineViewportStateCreateInfo viewport{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  viewport.viewportCount = viewport.scissorCount = 1;
  VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  raster.lineWidth = 1;
  VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
  VkPipelineDepthStencilStateCreateInfo depth{VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO};
  VkPipelineColorBlendAttachmentState blend_of_one{};
  blend_of_one.colorWriteMask = VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT | VK_COLOR_COMPONENT_B_BIT | VK_COLOR_COMPONENT_A_BIT;
  VkPipelineColorBlendStateCreateInfo blend{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  blend.attachmentCount = 1;
  blend.pAttachments = &blend_of_one;
  const VkDynamicState states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
  VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
  dynamic.dynamicStateCount = 2;
  dynamic.pDynamicStates = states;
  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
  info.stageCount = 2;
  info.pStages = stages;
  info.pVertexInputState = &vertices;
  info.pInputAssemblyState = &assembly;
  info.pViewportState = &viewport;
  info.pRasterizationState = &raster;
  info.pMultisampleState = &samples;
  info.pDepthStencilState = &depth;
  info.pColorBlendState = &blend;
  info.pDynamicState = &dynamic;
  info.layout = layout_;
  info.renderPass = render_pass;
  if (result == VK_SUCCESS) result = create_graphics_pipelines_(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  for (const VkShaderModule module : modules) destroy_shader_module_(device, module, nullptr);
  return result == VK_SUCCESS;
}

void Scene::destroy() {
  if (!destroy_pipeline_) return;
  destroy_pipeline_(device_, pipeline_, nullptr);
  destroy_pipeline_layout_(device_, layout_, nullptr);
  pipeline_ = VK_NULL_HANDLE, layout_ = VK_NULL_HANDLE;
}

void Scene::bind(VkCommandBuffer commands, VkExtent2D extent) const {
  bind_pipeline_(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  const VkViewport viewport{0, 0, static_cast<float>(extent.width), static_cast<float>(extent.height), 0, 1};
  const VkRect2D scissor{{0, 0}, extent};
  set_viewport_(commands, 0, 1, &viewport);
  set_scissor_(commands, 0, 1, &scissor);
}

void Scene::draw(VkCommandBuffer commands, float time_s, Place pet) const {
  const float push[4] = {pet.x, pet.y, time_s, 0};
  push_constants_(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT, 0, kPushBytes, push);
  draw_(commands, 3, kTriangles, 0, 0);
}

}  // namespace imprint::hosts

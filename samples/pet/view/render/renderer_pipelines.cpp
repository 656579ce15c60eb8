// Creates the renderer's pipelines.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "samples/pet/view/render/renderer.h"
#include "samples/pet/view/render/renderer_scene.h"
#include "shaders/lit_frag.h"
#include "shaders/lit_vert.h"
#include "shaders/mark_frag.h"
#include "shaders/mark_vert.h"
#include "shaders/shadow_vert.h"
#include "shaders/sky_frag.h"
#include "shaders/sky_vert.h"

namespace pet {
namespace {

// Null for no code.
Result<VkShaderModule> shader_module(VkDevice device, std::span<const std::uint32_t> code) {
  if (code.empty()) return VkShaderModule{VK_NULL_HANDLE};
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size_bytes();
  info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  PET_CHECK(check(vkCreateShaderModule(device, &info, nullptr, &module), "vkCreateShaderModule"));
  return module;
}

// A mesh's vertices and instances, as the vertex shaders read them.
struct MeshInput {
  std::array<VkVertexInputBindingDescription, 2> bindings = {
      {{0, sizeof(Vertex), VK_VERTEX_INPUT_RATE_VERTEX},
       {1, sizeof(DrawList::Instance), VK_VERTEX_INPUT_RATE_INSTANCE}}};
  std::vector<VkVertexInputAttributeDescription> attributes = {
      {0, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, position)},
      {1, 0, VK_FORMAT_R8G8B8A8_SNORM, offsetof(Vertex, normal)},
      {2, 0, VK_FORMAT_R8G8B8A8_UNORM, offsetof(Vertex, color)}};
  VkPipelineVertexInputStateCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};

  explicit MeshInput(bool meshes) {
    for (std::uint32_t row = 0; row < 5; ++row)
      attributes.push_back({3 + row, 1, VK_FORMAT_R32G32B32A32_SFLOAT, row * 16});
    if (!meshes) return;
    info.vertexBindingDescriptionCount = static_cast<std::uint32_t>(bindings.size());
    info.pVertexBindingDescriptions = bindings.data();
    info.vertexAttributeDescriptionCount = static_cast<std::uint32_t>(attributes.size());
    info.pVertexAttributeDescriptions = attributes.data();
  }
};

VkPipelineShaderStageCreateInfo shader_stage(VkShaderStageFlagBits stage, VkShaderModule module) {
  VkPipelineShaderStageCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage = stage;
  info.module = module;
  info.pName = "main";
  return info;
}

}  // namespace

// The differences between pipelines.
struct Renderer::PipelineRecipe {
  VkRenderPass pass;
  std::span<const std::uint32_t> vertex, fragment;  // no fragment shader: depth only
  bool multisampled = true;
  bool meshes = true;  // reads vertices and instances
  VkCompareOp depth_test = VK_COMPARE_OP_LESS;
  bool depth_write = true;
  bool color_write = true;
  bool blend = false;
  bool cull = true;
  float depth_bias = 0.0f, depth_slope_bias = 0.0f;
};

Result<VkPipeline> Renderer::create_pipeline(const PipelineRecipe& recipe) {
  PET_ASSIGN(const VkShaderModule vertex, shader_module(host_.device(), recipe.vertex));
  const Result<VkShaderModule> fragment = shader_module(host_.device(), recipe.fragment);
  Result<VkPipeline> pipeline = fragment ? create_pipeline(recipe, vertex, *fragment) : fragment.error();
  vkDestroyShaderModule(host_.device(), vertex, nullptr);
  if (fragment) vkDestroyShaderModule(host_.device(), *fragment, nullptr);
  return pipeline;
}

Result<VkPipeline> Renderer::create_pipeline(const PipelineRecipe& recipe, VkShaderModule vertex,
                                             VkShaderModule fragment) {
  const VkPipelineShaderStageCreateInfo stages[] = {shader_stage(VK_SHADER_STAGE_VERTEX_BIT, vertex),
                                                    shader_stage(VK_SHADER_STAGE_FRAGMENT_BIT, fragment)};
  const MeshInput input(recipe.meshes);
  VkPipelineInputAssemblyStateCreateInfo assembly{
      VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  VkPipelineViewportStateCreateInfo viewport{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  viewport.viewportCount = 1;
  viewport.scissorCount = 1;
  VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  raster.cullMode = recipe.cull ? VK_CULL_MODE_BACK_BIT : VK_CULL_MODE_NONE;
  raster.frontFace = VK_FRONT_FACE_COUNTER_CLOCKWISE;
  raster.lineWidth = 1.0f;
  raster.depthBiasEnable = recipe.depth_bias != 0.0f || recipe.depth_slope_bias != 0.0f;
  raster.depthBiasConstantFactor = recipe.depth_bias;
  raster.depthBiasSlopeFactor = recipe.depth_slope_bias;
  VkPipelineMultisampleStateCreateInfo multisample{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  multisample.rasterizationSamples = recipe.multisampled ? samples_ : VK_SAMPLE_COUNT_1_BIT;
  VkPipelineDepthStencilStateCreateInfo depth{VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO};
  depth.depthTestEnable = VK_TRUE;
  depth.depthWriteEnable = recipe.depth_write;
  depth.depthCompareOp = recipe.depth_test;
  VkPipelineColorBlendAttachmentState target{};
  target.blendEnable = recipe.blend;
  target.srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA;
  target.dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA;
  target.srcAlphaBlendFactor = VK_BLEND_FACTOR_ZERO;  // the picture stays opaque
  target.dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE;
  target.colorWriteMask = recipe.color_write ? VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT |
                                                   VK_COLOR_COMPONENT_B_BIT | VK_COLOR_COMPONENT_A_BIT
                                             : 0;
  VkPipelineColorBlendStateCreateInfo blend{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  blend.attachmentCount = recipe.pass == shadow_pass_ ? 0 : 1;
  blend.pAttachments = &target;
  const VkDynamicState dynamic_states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
  VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
  dynamic.dynamicStateCount = 2;
  dynamic.pDynamicStates = dynamic_states;

  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
  info.stageCount = fragment ? 2 : 1;
  info.pStages = stages;
  info.pVertexInputState = &input.info;
  info.pInputAssemblyState = &assembly;
  info.pViewportState = &viewport;
  info.pRasterizationState = &raster;
  info.pMultisampleState = &multisample;
  info.pDepthStencilState = &depth;
  info.pColorBlendState = &blend;
  info.pDynamicState = &dynamic;
  info.layout = layout_;
  info.renderPass = recipe.pass;
  VkPipeline pipeline = VK_NULL_HANDLE;
  PET_CHECK(check(vkCreateGraphicsPipelines(host_.device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline),
                  "vkCreateGraphicsPipelines"));
  return pipeline;
}

Result<> Renderer::create_pipelines() {
  PET_ASSIGN(shadow_, create_pipeline(PipelineRecipe{.pass = shadow_pass_,
                                                     .vertex = shadow_vert,
                                                     .multisampled = false,
                                                     .cull = false,
                                                     .depth_bias = 1.5f,
                                                     .depth_slope_bias = 2.0f}));
  PET_ASSIGN(solid_,
             create_pipeline(PipelineRecipe{.pass = scene_pass_, .vertex = lit_vert, .fragment = lit_frag}));
  PET_ASSIGN(sky_, create_pipeline(PipelineRecipe{.pass = scene_pass_,
                                                  .vertex = sky_vert,
                                                  .fragment = sky_frag,
                                                  .meshes = false,
                                                  .depth_test = VK_COMPARE_OP_LESS_OR_EQUAL,
                                                  .depth_write = false,
                                                  .cull = false}));
  PET_ASSIGN(mark_, create_pipeline(PipelineRecipe{.pass = scene_pass_,
                                                   .vertex = mark_vert,
                                                   .fragment = mark_frag,
                                                   .depth_write = false,
                                                   .blend = true,
                                                   .cull = false,
                                                   .depth_bias = -4.0f,
                                                   .depth_slope_bias = -1.0f}));
  PET_ASSIGN(ghost_depth_,
             create_pipeline(PipelineRecipe{
                 .pass = scene_pass_, .vertex = lit_vert, .fragment = lit_frag, .color_write = false}));
  PET_ASSIGN(ghost_color_, create_pipeline(PipelineRecipe{.pass = scene_pass_,
                                                          .vertex = lit_vert,
                                                          .fragment = lit_frag,
                                                          .depth_test = VK_COMPARE_OP_EQUAL,
                                                          .depth_write = false,
                                                          .blend = true}));
  return {};
}

}  // namespace pet

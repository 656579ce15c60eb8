// What the renderer is made of: meshes, passes, pipelines, images.

#include <cstddef>
#include <span>

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

constexpr VkFormat kColorFormat = VK_FORMAT_R8G8B8A8_UNORM;

bool supports(VkPhysicalDevice device, VkFormat format, VkFormatFeatureFlags features) {
  VkFormatProperties properties;
  vkGetPhysicalDeviceFormatProperties(device, format, &properties);
  return (properties.optimalTilingFeatures & features) == features;
}

VkShaderModule shader_module(VkDevice device, std::span<const std::uint32_t> code) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size_bytes();
  info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device, &info, nullptr, &module), "vkCreateShaderModule");
  return module;
}

VkFramebuffer framebuffer(VkDevice device, VkRenderPass pass, VkExtent2D extent,
                          const std::vector<VkImageView>& views) {
  VkFramebufferCreateInfo info{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  info.renderPass = pass;
  info.attachmentCount = static_cast<std::uint32_t>(views.size());
  info.pAttachments = views.data();
  info.width = extent.width;
  info.height = extent.height;
  info.layers = 1;
  VkFramebuffer result = VK_NULL_HANDLE;
  check(vkCreateFramebuffer(device, &info, nullptr, &result), "vkCreateFramebuffer");
  return result;
}

VkRenderPass render_pass(VkDevice device, std::span<const VkAttachmentDescription> attachments,
                         const VkSubpassDescription& subpass,
                         std::span<const VkSubpassDependency> dependencies) {
  VkRenderPassCreateInfo info{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  info.attachmentCount = static_cast<std::uint32_t>(attachments.size());
  info.pAttachments = attachments.data();
  info.subpassCount = 1;
  info.pSubpasses = &subpass;
  info.dependencyCount = static_cast<std::uint32_t>(dependencies.size());
  info.pDependencies = dependencies.data();
  VkRenderPass result = VK_NULL_HANDLE;
  check(vkCreateRenderPass(device, &info, nullptr, &result), "vkCreateRenderPass");
  return result;
}

constexpr VkPipelineStageFlags kDepthStages =
    VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
constexpr VkAccessFlags kDepthAccess =
    VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
constexpr VkAccessFlags kColorAccess =
    VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT;

}  // namespace

// What differs between pipelines.
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

Renderer::Renderer(VulkanHost& host, VkExtent2D extent, bool quick) : host_(host), extent_(extent) {
  const VkPhysicalDeviceLimits& limits = host.properties().limits;
  const VkSampleCountFlags counts = limits.framebufferColorSampleCounts & limits.framebufferDepthSampleCounts;
  if (quick || !(counts & samples_)) samples_ = VK_SAMPLE_COUNT_1_BIT;
  if (quick) shadow_size_ /= 2;
  constexpr VkFormatFeatureFlags kNeeded =
      VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
  if (!supports(host.physical_device(), depth_format_, kNeeded)) depth_format_ = VK_FORMAT_D16_UNORM;
  upload_meshes();
  create_passes();
  create_shadow();
  create_layout();
  create_pipelines();
  create_targets();
}

Renderer::~Renderer() {
  const VkDevice device = host_.device();
  destroy_targets();
  for (VkPipeline pipeline : {shadow_, sky_, solid_, mark_, ghost_depth_, ghost_color_})
    vkDestroyPipeline(device, pipeline, nullptr);
  vkDestroyPipelineLayout(device, layout_, nullptr);
  vkDestroyDescriptorPool(device, descriptors_, nullptr);
  vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
  vkDestroySampler(device, shadow_sampler_, nullptr);
  vkDestroyFramebuffer(device, shadow_frame_, nullptr);
  for (VkRenderPass pass : {shadow_pass_, scene_pass_, overlay_pass_})
    vkDestroyRenderPass(device, pass, nullptr);
}

void Renderer::upload_meshes() {
  const std::array<Mesh, kMeshCount> meshes = make_meshes();
  std::vector<Vertex> vertices;
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < kMeshCount; ++i) {
    ranges_[i] = {static_cast<std::uint32_t>(indices.size()),
                  static_cast<std::uint32_t>(meshes[i].indices.size()),
                  static_cast<std::int32_t>(vertices.size())};
    vertices.insert(vertices.end(), meshes[i].vertices.begin(), meshes[i].vertices.end());
    indices.insert(indices.end(), meshes[i].indices.begin(), meshes[i].indices.end());
  }
  vertices_ =
      upload(host_, vertices.data(), vertices.size() * sizeof(Vertex), VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  indices_ =
      upload(host_, indices.data(), indices.size() * sizeof(std::uint32_t), VK_BUFFER_USAGE_INDEX_BUFFER_BIT);
}

// Two frames in flight share the images: every pass first waits for what the frame before still does with
// them.
void Renderer::create_passes() {
  const VkDevice device = host_.device();
  const bool resolves = samples_ != VK_SAMPLE_COUNT_1_BIT;

  VkAttachmentDescription shadow{};
  shadow.format = depth_format_;
  shadow.samples = VK_SAMPLE_COUNT_1_BIT;
  shadow.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  shadow.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  shadow.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  shadow.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  shadow.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  shadow.finalLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
  const VkAttachmentReference shadow_depth{0, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.pDepthStencilAttachment = &shadow_depth;
  const VkSubpassDependency shadow_order[] = {
      {VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT | kDepthStages, kDepthStages,
       kDepthAccess, kDepthAccess, 0},
      {0, VK_SUBPASS_EXTERNAL, kDepthStages, VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
       VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT, 0},
  };
  shadow_pass_ = render_pass(device, {&shadow, 1}, subpass, shadow_order);

  VkAttachmentDescription color{};
  color.format = kColorFormat;
  color.samples = samples_;
  color.loadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;  // the sky covers all
  color.storeOp = resolves ? VK_ATTACHMENT_STORE_OP_DONT_CARE : VK_ATTACHMENT_STORE_OP_STORE;
  color.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  color.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  color.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  color.finalLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  VkAttachmentDescription depth = color;
  depth.format = depth_format_;
  depth.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  depth.storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  depth.finalLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL;
  VkAttachmentDescription resolved = color;
  resolved.samples = VK_SAMPLE_COUNT_1_BIT;
  resolved.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  const VkAttachmentReference color_reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference depth_reference{1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference resolve_reference{2, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &color_reference;
  subpass.pDepthStencilAttachment = &depth_reference;
  subpass.pResolveAttachments = resolves ? &resolve_reference : nullptr;
  constexpr VkPipelineStageFlags kColorStage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  const VkSubpassDependency scene_order[] = {
      {VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_TRANSFER_BIT | kColorStage | kDepthStages,
       kColorStage | kDepthStages, kColorAccess | kDepthAccess, kColorAccess | kDepthAccess, 0},
      {0, VK_SUBPASS_EXTERNAL, kColorStage, kColorStage, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, kColorAccess,
       0},
  };
  const VkAttachmentDescription scene[] = {color, depth, resolved};
  scene_pass_ = render_pass(device, {scene, resolves ? 3u : 2u}, subpass, scene_order);

  VkAttachmentDescription overlay = resolved;
  overlay.loadOp = VK_ATTACHMENT_LOAD_OP_LOAD;
  overlay.initialLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  overlay.finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  subpass.pDepthStencilAttachment = nullptr;
  subpass.pResolveAttachments = nullptr;
  const VkSubpassDependency overlay_order[] = {
      {VK_SUBPASS_EXTERNAL, 0, kColorStage, kColorStage, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, kColorAccess,
       0},
      {0, VK_SUBPASS_EXTERNAL, kColorStage, VK_PIPELINE_STAGE_TRANSFER_BIT,
       VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0},
  };
  overlay_pass_ = render_pass(device, {&overlay, 1}, subpass, overlay_order);
}

void Renderer::create_shadow() {
  const VkDevice device = host_.device();
  shadow_map_ = GpuImage(host_, {shadow_size_, shadow_size_}, depth_format_,
                         VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT,
                         VK_IMAGE_ASPECT_DEPTH_BIT);
  shadow_frame_ = framebuffer(device, shadow_pass_, {shadow_size_, shadow_size_}, {shadow_map_.view()});
  const bool smooth_edges =
      supports(host_.physical_device(), depth_format_, VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT);
  VkSamplerCreateInfo sampler{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
  sampler.magFilter = sampler.minFilter = smooth_edges ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
  sampler.addressModeU = sampler.addressModeV = sampler.addressModeW =
      VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER;
  sampler.borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE;  // beyond the map the sun shines
  sampler.compareEnable = VK_TRUE;
  sampler.compareOp = VK_COMPARE_OP_LESS_OR_EQUAL;
  check(vkCreateSampler(device, &sampler, nullptr, &shadow_sampler_), "vkCreateSampler");
}

void Renderer::create_layout() {
  const VkDevice device = host_.device();
  constexpr std::uint32_t kFrames = VulkanHost::kFramesInFlight;
  const VkDescriptorSetLayoutBinding bindings[] = {
      {0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT,
       nullptr},
      {1, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, VK_SHADER_STAGE_FRAGMENT_BIT, &shadow_sampler_},
  };
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = 2;
  set.pBindings = bindings;
  check(vkCreateDescriptorSetLayout(device, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  check(vkCreatePipelineLayout(device, &layout, nullptr, &layout_), "vkCreatePipelineLayout");

  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kFrames},
                                        {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, kFrames}};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.maxSets = kFrames;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  check(vkCreateDescriptorPool(device, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool");
  for (FrameBuffers& frame : frames_) {
    frame.uniforms = GpuBuffer(host_, sizeof(SceneUniforms), VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT, true);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptors_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    check(vkAllocateDescriptorSets(device, &allocate, &frame.set), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo uniforms{frame.uniforms.buffer(), 0, sizeof(SceneUniforms)};
    const VkDescriptorImageInfo shadow{VK_NULL_HANDLE, shadow_map_.view(),
                                       VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet writes[2]{{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET},
                                   {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET}};
    for (std::uint32_t i = 0; i < 2; ++i) {
      writes[i].dstSet = frame.set;
      writes[i].dstBinding = i;
      writes[i].descriptorCount = 1;
      writes[i].descriptorType = bindings[i].descriptorType;
    }
    writes[0].pBufferInfo = &uniforms;
    writes[1].pImageInfo = &shadow;
    vkUpdateDescriptorSets(device, 2, writes, 0, nullptr);
  }
}

VkPipeline Renderer::create_pipeline(const PipelineRecipe& recipe) {
  const VkDevice device = host_.device();
  const VkShaderModule vertex = shader_module(device, recipe.vertex);
  const VkShaderModule fragment =
      recipe.fragment.empty() ? VK_NULL_HANDLE : shader_module(device, recipe.fragment);
  VkPipelineShaderStageCreateInfo stages[2]{{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO},
                                            {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO}};
  stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
  stages[0].module = vertex;
  stages[0].pName = "main";
  stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
  stages[1].module = fragment;
  stages[1].pName = "main";

  const VkVertexInputBindingDescription bindings[] = {
      {0, sizeof(Vertex), VK_VERTEX_INPUT_RATE_VERTEX},
      {1, sizeof(DrawList::Instance), VK_VERTEX_INPUT_RATE_INSTANCE}};
  std::vector<VkVertexInputAttributeDescription> attributes = {
      {0, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Vertex, position)},
      {1, 0, VK_FORMAT_R8G8B8A8_SNORM, offsetof(Vertex, normal)},
      {2, 0, VK_FORMAT_R8G8B8A8_UNORM, offsetof(Vertex, color)}};
  for (std::uint32_t row = 0; row < 5; ++row)
    attributes.push_back({3 + row, 1, VK_FORMAT_R32G32B32A32_SFLOAT, row * 16});
  VkPipelineVertexInputStateCreateInfo input{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  if (recipe.meshes) {
    input.vertexBindingDescriptionCount = 2;
    input.pVertexBindingDescriptions = bindings;
    input.vertexAttributeDescriptionCount = static_cast<std::uint32_t>(attributes.size());
    input.pVertexAttributeDescriptions = attributes.data();
  }
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
  info.pVertexInputState = &input;
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
  const VkResult result = vkCreateGraphicsPipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  vkDestroyShaderModule(device, vertex, nullptr);
  vkDestroyShaderModule(device, fragment, nullptr);
  check(result, "vkCreateGraphicsPipelines");
  return pipeline;
}

void Renderer::create_pipelines() {
  shadow_ = create_pipeline({.pass = shadow_pass_,
                             .vertex = shadow_vert,
                             .multisampled = false,
                             .cull = false,
                             .depth_bias = 1.5f,
                             .depth_slope_bias = 2.0f});
  solid_ = create_pipeline({.pass = scene_pass_, .vertex = lit_vert, .fragment = lit_frag});
  sky_ = create_pipeline({.pass = scene_pass_,
                          .vertex = sky_vert,
                          .fragment = sky_frag,
                          .meshes = false,
                          .depth_test = VK_COMPARE_OP_LESS_OR_EQUAL,
                          .depth_write = false,
                          .cull = false});
  mark_ = create_pipeline({.pass = scene_pass_,
                           .vertex = mark_vert,
                           .fragment = mark_frag,
                           .depth_write = false,
                           .blend = true,
                           .cull = false,
                           .depth_bias = -4.0f,
                           .depth_slope_bias = -1.0f});
  ghost_depth_ =
      create_pipeline({.pass = scene_pass_, .vertex = lit_vert, .fragment = lit_frag, .color_write = false});
  ghost_color_ = create_pipeline({.pass = scene_pass_,
                                  .vertex = lit_vert,
                                  .fragment = lit_frag,
                                  .depth_test = VK_COMPARE_OP_EQUAL,
                                  .depth_write = false,
                                  .blend = true});
}

void Renderer::create_targets() {
  const VkDevice device = host_.device();
  color_ = GpuImage(host_, extent_, kColorFormat,
                    VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
                    VK_IMAGE_ASPECT_COLOR_BIT);
  depth_ = GpuImage(host_, extent_, depth_format_, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                    VK_IMAGE_ASPECT_DEPTH_BIT, samples_);
  std::vector<VkImageView> views = {color_.view(), depth_.view()};
  if (samples_ != VK_SAMPLE_COUNT_1_BIT) {
    multisampled_ = GpuImage(host_, extent_, kColorFormat,
                             VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT,
                             VK_IMAGE_ASPECT_COLOR_BIT, samples_);
    views = {multisampled_.view(), depth_.view(), color_.view()};
  }
  scene_frame_ = framebuffer(device, scene_pass_, extent_, views);
  overlay_frame_ = framebuffer(device, overlay_pass_, extent_, {color_.view()});
}

void Renderer::destroy_targets() {
  vkDestroyFramebuffer(host_.device(), scene_frame_, nullptr);
  vkDestroyFramebuffer(host_.device(), overlay_frame_, nullptr);
  color_ = GpuImage();
  depth_ = GpuImage();
  multisampled_ = GpuImage();
}

void Renderer::resize(VkExtent2D extent) {
  host_.wait_idle();
  destroy_targets();
  extent_ = extent;
  create_targets();
}

}  // namespace pet

// Creates the renderer: meshes, passes, targets. Pipelines are in renderer_pipelines.cpp.

#include <memory>
#include <span>
#include <vector>

#include "samples/pet/view/render/renderer.h"
#include "samples/pet/view/render/renderer_scene.h"

namespace pet {
namespace {

constexpr VkFormat kColorFormat = VK_FORMAT_R8G8B8A8_UNORM;

bool supports(VkPhysicalDevice device, VkFormat format, VkFormatFeatureFlags features) {
  VkFormatProperties properties;
  vkGetPhysicalDeviceFormatProperties(device, format, &properties);
  return (properties.optimalTilingFeatures & features) == features;
}

Result<VkFramebuffer> framebuffer(VkDevice device, VkRenderPass pass, VkExtent2D extent,
                                  const std::vector<VkImageView>& views) {
  VkFramebufferCreateInfo info{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  info.renderPass = pass;
  info.attachmentCount = static_cast<std::uint32_t>(views.size());
  info.pAttachments = views.data();
  info.width = extent.width;
  info.height = extent.height;
  info.layers = 1;
  VkFramebuffer result = VK_NULL_HANDLE;
  PET_CHECK(check(vkCreateFramebuffer(device, &info, nullptr, &result), "vkCreateFramebuffer"));
  return result;
}

Result<VkRenderPass> render_pass(VkDevice device, std::span<const VkAttachmentDescription> attachments,
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
  PET_CHECK(check(vkCreateRenderPass(device, &info, nullptr, &result), "vkCreateRenderPass"));
  return result;
}

constexpr VkPipelineStageFlags kDepthStages =
    VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
constexpr VkAccessFlags kDepthAccess =
    VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
constexpr VkAccessFlags kColorAccess =
    VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT;

}  // namespace

Renderer::Renderer(VulkanHost& host, VkExtent2D extent, bool quick) : host_(host), extent_(extent) {
  const VkPhysicalDeviceLimits& limits = host.properties().limits;
  const VkSampleCountFlags counts = limits.framebufferColorSampleCounts & limits.framebufferDepthSampleCounts;
  if (quick || !(counts & samples_)) samples_ = VK_SAMPLE_COUNT_1_BIT;
  if (quick) shadow_size_ /= 2;
  constexpr VkFormatFeatureFlags kNeeded =
      VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
  if (!supports(host.physical_device(), depth_format_, kNeeded)) depth_format_ = VK_FORMAT_D16_UNORM;
}

Result<std::unique_ptr<Renderer>> Renderer::create(VulkanHost& host, VkExtent2D extent, bool quick) {
  std::unique_ptr<Renderer> made(new Renderer(host, extent, quick));
  PET_CHECK(made->upload_meshes());
  PET_CHECK(made->create_shadow_pass());
  PET_CHECK(made->create_scene_passes());
  PET_CHECK(made->create_shadow());
  PET_CHECK(made->create_layout());
  PET_CHECK(made->create_descriptors());
  PET_CHECK(made->create_pipelines());
  PET_CHECK(made->create_targets());
  return made;
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

Result<> Renderer::upload_meshes() {
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
  PET_ASSIGN(vertices_, upload(host_, vertices.data(), vertices.size() * sizeof(Vertex),
                               VK_BUFFER_USAGE_VERTEX_BUFFER_BIT));
  PET_ASSIGN(indices_, upload(host_, indices.data(), indices.size() * sizeof(std::uint32_t),
                              VK_BUFFER_USAGE_INDEX_BUFFER_BIT));
  return {};
}

// Two frames in flight share the images, so every pass first waits for the frame before.
Result<> Renderer::create_shadow_pass() {
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
  PET_ASSIGN(shadow_pass_, render_pass(host_.device(), {&shadow, 1}, subpass, shadow_order));
  return {};
}

Result<> Renderer::create_scene_passes() {
  const VkDevice device = host_.device();
  const bool resolves = samples_ != VK_SAMPLE_COUNT_1_BIT;

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
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
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
  PET_ASSIGN(scene_pass_, render_pass(device, {scene, resolves ? 3u : 2u}, subpass, scene_order));

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
  PET_ASSIGN(overlay_pass_, render_pass(device, {&overlay, 1}, subpass, overlay_order));
  return {};
}

Result<> Renderer::create_shadow() {
  const VkDevice device = host_.device();
  PET_ASSIGN(shadow_map_,
             GpuImage::create(host_, {shadow_size_, shadow_size_}, depth_format_,
                              VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | VK_IMAGE_USAGE_SAMPLED_BIT,
                              VK_IMAGE_ASPECT_DEPTH_BIT));
  const std::vector<VkImageView> views = {shadow_map_.view()};
  PET_ASSIGN(shadow_frame_, framebuffer(device, shadow_pass_, {shadow_size_, shadow_size_}, views));
  const bool smooth_edges =
      supports(host_.physical_device(), depth_format_, VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT);
  VkSamplerCreateInfo sampler{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
  sampler.magFilter = sampler.minFilter = smooth_edges ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
  sampler.addressModeU = sampler.addressModeV = sampler.addressModeW =
      VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER;
  sampler.borderColor = VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE;  // no shadow beyond the map
  sampler.compareEnable = VK_TRUE;
  sampler.compareOp = VK_COMPARE_OP_LESS_OR_EQUAL;
  return check(vkCreateSampler(device, &sampler, nullptr, &shadow_sampler_), "vkCreateSampler");
}

Result<> Renderer::create_layout() {
  const VkDevice device = host_.device();
  const VkDescriptorSetLayoutBinding bindings[] = {
      {0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT,
       nullptr},
      {1, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, VK_SHADER_STAGE_FRAGMENT_BIT, &shadow_sampler_},
  };
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = 2;
  set.pBindings = bindings;
  PET_CHECK(
      check(vkCreateDescriptorSetLayout(device, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout"));
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  return check(vkCreatePipelineLayout(device, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
}

Result<> Renderer::create_descriptors() {
  const VkDevice device = host_.device();
  constexpr std::uint32_t kFrames = VulkanHost::kFramesInFlight;
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kFrames},
                                        {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, kFrames}};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.maxSets = kFrames;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  PET_CHECK(check(vkCreateDescriptorPool(device, &pool, nullptr, &descriptors_), "vkCreateDescriptorPool"));
  for (FrameBuffers& frame : frames_) {
    PET_ASSIGN(frame.uniforms,
               GpuBuffer::create(host_, sizeof(SceneUniforms), VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT, true));
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptors_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    PET_CHECK(check(vkAllocateDescriptorSets(device, &allocate, &frame.set), "vkAllocateDescriptorSets"));
    const VkDescriptorBufferInfo uniforms{frame.uniforms.buffer(), 0, sizeof(SceneUniforms)};
    const VkDescriptorImageInfo shadow{VK_NULL_HANDLE, shadow_map_.view(),
                                       VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet writes[2]{{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET},
                                   {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET}};
    for (std::uint32_t i = 0; i < 2; ++i) {
      writes[i].dstSet = frame.set;
      writes[i].dstBinding = i;
      writes[i].descriptorCount = 1;
      writes[i].descriptorType = sizes[i].type;
    }
    writes[0].pBufferInfo = &uniforms;
    writes[1].pImageInfo = &shadow;
    vkUpdateDescriptorSets(device, 2, writes, 0, nullptr);
  }
  return {};
}

Result<> Renderer::create_targets() {
  const VkDevice device = host_.device();
  PET_ASSIGN(color_, GpuImage::create(host_, extent_, kColorFormat,
                                      VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
                                      VK_IMAGE_ASPECT_COLOR_BIT));
  PET_ASSIGN(depth_,
             GpuImage::create(host_, extent_, depth_format_, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                              VK_IMAGE_ASPECT_DEPTH_BIT, samples_));
  std::vector<VkImageView> views = {color_.view(), depth_.view()};
  if (samples_ != VK_SAMPLE_COUNT_1_BIT) {
    PET_ASSIGN(multisampled_,
               GpuImage::create(host_, extent_, kColorFormat,
                                VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT,
                                VK_IMAGE_ASPECT_COLOR_BIT, samples_));
    views = {multisampled_.view(), depth_.view(), color_.view()};
  }
  PET_ASSIGN(scene_frame_, framebuffer(device, scene_pass_, extent_, views));
  views = {color_.view()};
  PET_ASSIGN(overlay_frame_, framebuffer(device, overlay_pass_, extent_, views));
  return {};
}

void Renderer::destroy_targets() {
  vkDestroyFramebuffer(host_.device(), scene_frame_, nullptr);
  vkDestroyFramebuffer(host_.device(), overlay_frame_, nullptr);
  scene_frame_ = overlay_frame_ = VK_NULL_HANDLE;
  color_ = GpuImage();
  depth_ = GpuImage();
  multisampled_ = GpuImage();
}

Result<> Renderer::resize(VkExtent2D extent) {
  PET_CHECK(host_.wait_idle());
  destroy_targets();
  extent_ = extent;
  return create_targets();
}

}  // namespace pet

#include "tests/hosts/colour_target.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace imprint::hosts {
namespace {

void expect(VkResult result, const char* what) { EXPECT_EQ(result, VK_SUCCESS) << what; }

}  // namespace

DrawFunctions DrawFunctions::load(PFN_vkGetDeviceProcAddr get, VkDevice device) {
  DrawFunctions functions;
#define HOSTS_LOAD(name)                                             \
  functions.name = reinterpret_cast<PFN_##name>(get(device, #name)); \
  EXPECT_NE(functions.name, nullptr) << #name;
  HOSTS_DRAW_FUNCTIONS(HOSTS_LOAD)
#undef HOSTS_LOAD
  return functions;
}

void ColourTarget::make(PFN_vkGetDeviceProcAddr get, VkDevice device, VkExtent2D extent,
                        VkDeviceSize least_bytes) {
  f_ = DrawFunctions::load(get, device);
  device_ = device;
  extent_ = extent;
  make_image(least_bytes);
  make_pass();
  VkFramebufferCreateInfo framebuffer{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  framebuffer.renderPass = pass_;
  framebuffer.attachmentCount = 1;
  framebuffer.pAttachments = &view_;
  framebuffer.width = extent_.width;
  framebuffer.height = extent_.height;
  framebuffer.layers = 1;
  expect(f_.vkCreateFramebuffer(device_, &framebuffer, nullptr, &framebuffer_), "vkCreateFramebuffer");
}

void ColourTarget::make_image(VkDeviceSize least_bytes) {
  VkImageCreateInfo image{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  image.imageType = VK_IMAGE_TYPE_2D;
  image.format = kFormat;
  image.extent = {extent_.width, extent_.height, 1};
  image.mipLevels = image.arrayLayers = 1;
  image.samples = VK_SAMPLE_COUNT_1_BIT;
  image.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  expect(f_.vkCreateImage(device_, &image, nullptr, &image_), "vkCreateImage");
  VkMemoryRequirements needs{};
  f_.vkGetImageMemoryRequirements(device_, image_, &needs);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize =
      std::max(needs.size + 1, least_bytes);  // the size of a block, not of one resource
  while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u)) ++allocate.memoryTypeIndex;
  expect(f_.vkAllocateMemory(device_, &allocate, nullptr, &memory_), "vkAllocateMemory");
  expect(f_.vkBindImageMemory(device_, image_, memory_, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = kFormat;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  expect(f_.vkCreateImageView(device_, &view, nullptr, &view_), "vkCreateImageView");
}

void ColourTarget::make_pass() {
  VkAttachmentDescription colour{};
  colour.format = kFormat;
  colour.samples = VK_SAMPLE_COUNT_1_BIT;
  colour.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  colour.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  colour.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  colour.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  colour.finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &reference;
  const VkPipelineStageFlags output = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
                             transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
  // After the last draw or copy of it, and before the next copy.
  const VkSubpassDependency dependencies[] = {
      {VK_SUBPASS_EXTERNAL, 0, output | transfer, output,
       VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT,
       VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0},
      {0, VK_SUBPASS_EXTERNAL, output, transfer, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
       VK_ACCESS_TRANSFER_READ_BIT, 0}};
  VkRenderPassCreateInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  pass.attachmentCount = pass.subpassCount = 1;
  pass.pAttachments = &colour;
  pass.pSubpasses = &subpass;
  pass.dependencyCount = 2;
  pass.pDependencies = dependencies;
  expect(f_.vkCreateRenderPass(device_, &pass, nullptr, &pass_), "vkCreateRenderPass");
}

void ColourTarget::destroy() {
  if (!device_) return;
  f_.vkDestroyFramebuffer(device_, framebuffer_, nullptr);
  f_.vkDestroyRenderPass(device_, pass_, nullptr);
  f_.vkDestroyImageView(device_, view_, nullptr);
  f_.vkDestroyImage(device_, image_, nullptr);
  f_.vkFreeMemory(device_, memory_, nullptr);
  *this = {};
}

void ColourTarget::begin(VkCommandBuffer commands, const VkClearColorValue& clear) const {
  VkClearValue value{};
  value.color = clear;
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = pass_;
  begin.framebuffer = framebuffer_;
  begin.renderArea = {{0, 0}, extent_};
  begin.clearValueCount = 1;
  begin.pClearValues = &value;
  f_.vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
}

void ColourTarget::end(VkCommandBuffer commands) const { f_.vkCmdEndRenderPass(commands); }

void ColourTarget::use_whole(VkCommandBuffer commands) const {
  const VkViewport viewport{0, 0, static_cast<float>(extent_.width), static_cast<float>(extent_.height),
                            0, 1};
  const VkRect2D scissor{{0, 0}, extent_};
  f_.vkCmdSetViewport(commands, 0, 1, &viewport);
  f_.vkCmdSetScissor(commands, 0, 1, &scissor);
}

void ColourTarget::copy(VkCommandBuffer commands, VkBuffer into) const {
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {extent_.width, extent_.height, 1};
  f_.vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, into, 1, &region);
}

VkShaderModule DrawPipeline::make_module(std::span<const std::uint32_t> words) const {
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = words.size_bytes();
  code.pCode = words.data();
  VkShaderModule made = VK_NULL_HANDLE;
  expect(f_.vkCreateShaderModule(device_, &code, nullptr, &made), "vkCreateShaderModule");
  return made;
}

void DrawPipeline::make(const DrawFunctions& functions, VkDevice device, VkRenderPass pass,
                        const DrawPipelineDescription& description) {
  f_ = functions;
  device_ = device;
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.pushConstantRangeCount = description.push_constants.size > 0 ? 1 : 0;
  layout.pPushConstantRanges = &description.push_constants;
  expect(f_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  VkPipelineShaderStageCreateInfo stages[2]{{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO},
                                            {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO}};
  stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
  stages[0].module = make_module(description.vertex_shader);
  stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
  stages[1].module = make_module(description.fragment_shader);
  for (auto& stage : stages) stage.pName = "main";
  const VkPipelineVertexInputStateCreateInfo none{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  VkPipelineInputAssemblyStateCreateInfo assembly{
      VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  assembly.topology = description.topology;
  VkPipelineViewportStateCreateInfo view{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  view.viewportCount = view.scissorCount = 1;
  VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  raster.lineWidth = 1;
  VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
  const VkPipelineDepthStencilStateCreateInfo depth{
      VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO};  // for passes with depth
  VkPipelineColorBlendAttachmentState blend{};
  blend.colorWriteMask = VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT | VK_COLOR_COMPONENT_B_BIT |
                         VK_COLOR_COMPONENT_A_BIT;
  VkPipelineColorBlendStateCreateInfo blending{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  blending.attachmentCount = 1;
  blending.pAttachments = &blend;
  const VkDynamicState states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
  VkPipelineDynamicStateCreateInfo dynamic{VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO};
  dynamic.dynamicStateCount = 2;
  dynamic.pDynamicStates = states;
  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
  info.stageCount = 2;
  info.pStages = stages;
  info.pVertexInputState = description.vertices ? description.vertices : &none;
  info.pInputAssemblyState = &assembly;
  info.pViewportState = &view;
  info.pRasterizationState = &raster;
  info.pMultisampleState = &samples;
  info.pDepthStencilState = &depth;
  info.pColorBlendState = &blending;
  info.pDynamicState = &dynamic;
  info.layout = layout_;
  info.renderPass = pass;
  expect(f_.vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
         "vkCreateGraphicsPipelines");
  for (auto& stage : stages) f_.vkDestroyShaderModule(device_, stage.module, nullptr);
}

void DrawPipeline::destroy() {
  if (!device_) return;
  f_.vkDestroyPipeline(device_, pipeline_, nullptr);
  f_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  *this = {};
}

}  // namespace imprint::hosts

#include "tests/hosts/overlap_load.h"

#include <gtest/gtest.h>

#include "shaders/overlap_load_frag.h"
#include "shaders/overlap_load_vert.h"

namespace imprint::bridge {
namespace {

constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

void expect(VkResult result, const char* what) { EXPECT_EQ(result, VK_SUCCESS) << what; }

}  // namespace

OverlapLoad::OverlapLoad(PlainHost& host, std::uint32_t side) : host_(host), vk_(host.vk()), device_(host.device()), side_(side) {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(host.physical_device(), &properties);
  period_ns_ = properties.limits.timestampPeriod;
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2 * kFrames;
  expect(vk_.vkCreateQueryPool(device_, &info, nullptr, &queries_), "vkCreateQueryPool");
  make_target();
  make_pipeline();
}

OverlapLoad::~OverlapLoad() {
  host_.wait_idle();
  vk_.vkDestroyPipeline(device_, pipeline_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  vk_.vkDestroyFramebuffer(device_, framebuffer_, nullptr);
  vk_.vkDestroyRenderPass(device_, pass_, nullptr);
  vk_.vkDestroyImageView(device_, view_, nullptr);
  vk_.vkDestroyImage(device_, image_, nullptr);
  vk_.vkFreeMemory(device_, memory_, nullptr);
  vk_.vkDestroyQueryPool(device_, queries_, nullptr);
}

void OverlapLoad::make_target() {
  VkImageCreateInfo image{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  image.imageType = VK_IMAGE_TYPE_2D;
  image.format = kFormat;
  image.extent = {side_, side_, 1};
  image.mipLevels = image.arrayLayers = 1;
  image.samples = VK_SAMPLE_COUNT_1_BIT;
  image.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
  expect(vk_.vkCreateImage(device_, &image, nullptr, &image_), "vkCreateImage");
  VkMemoryRequirements needs{};
  vk_.vkGetImageMemoryRequirements(device_, image_, &needs);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u)) ++allocate.memoryTypeIndex;
  expect(vk_.vkAllocateMemory(device_, &allocate, nullptr, &memory_), "vkAllocateMemory");
  expect(vk_.vkBindImageMemory(device_, image_, memory_, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = kFormat;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  expect(vk_.vkCreateImageView(device_, &view, nullptr, &view_), "vkCreateImageView");

  VkAttachmentDescription colour{};
  colour.format = kFormat;
  colour.samples = VK_SAMPLE_COUNT_1_BIT;
  colour.loadOp = colour.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  colour.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  colour.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  colour.finalLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &reference;
  const VkPipelineStageFlags output = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  const VkSubpassDependency dependency{VK_SUBPASS_EXTERNAL, 0, output, output, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0};
  VkRenderPassCreateInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  pass.attachmentCount = pass.subpassCount = pass.dependencyCount = 1;
  pass.pAttachments = &colour;
  pass.pSubpasses = &subpass;
  pass.pDependencies = &dependency;
  expect(vk_.vkCreateRenderPass(device_, &pass, nullptr, &pass_), "vkCreateRenderPass");
  VkFramebufferCreateInfo framebuffer{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  framebuffer.renderPass = pass_;
  framebuffer.attachmentCount = 1;
  framebuffer.pAttachments = &view_;
  framebuffer.width = framebuffer.height = side_;
  framebuffer.layers = 1;
  expect(vk_.vkCreateFramebuffer(device_, &framebuffer, nullptr, &framebuffer_), "vkCreateFramebuffer");
}

void OverlapLoad::make_pipeline() {
  const VkPushConstantRange range{VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(std::int32_t)};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  expect(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  VkPipelineShaderStageCreateInfo stages[2]{{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO}, {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO}};
  const auto module = [&](const std::uint32_t* words, std::size_t bytes) {
    VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    info.codeSize = bytes;
    info.pCode = words;
    VkShaderModule made = VK_NULL_HANDLE;
    expect(vk_.vkCreateShaderModule(device_, &info, nullptr, &made), "vkCreateShaderModule");
    return made;
  };
  stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
  stages[0].module = module(overlap_load_vert, sizeof overlap_load_vert);
  stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
  stages[1].module = module(overlap_load_frag, sizeof overlap_load_frag);
  for (auto& stage : stages) stage.pName = "main";
  const VkPipelineVertexInputStateCreateInfo vertices{VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  VkPipelineInputAssemblyStateCreateInfo assembly{VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO};
  assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  const VkViewport viewport{0, 0, static_cast<float>(side_), static_cast<float>(side_), 0, 1};
  const VkRect2D scissor{{0, 0}, {side_, side_}};
  VkPipelineViewportStateCreateInfo view{VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO};
  view.viewportCount = view.scissorCount = 1;
  view.pViewports = &viewport;
  view.pScissors = &scissor;
  VkPipelineRasterizationStateCreateInfo raster{VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO};
  raster.lineWidth = 1;
  VkPipelineMultisampleStateCreateInfo samples{VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO};
  samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
  VkPipelineColorBlendAttachmentState blend{};
  blend.colorWriteMask = 0xF;
  VkPipelineColorBlendStateCreateInfo blending{VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO};
  blending.attachmentCount = 1;
  blending.pAttachments = &blend;
  VkGraphicsPipelineCreateInfo info{VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO};
  info.stageCount = 2;
  info.pStages = stages;
  info.pVertexInputState = &vertices;
  info.pInputAssemblyState = &assembly;
  info.pViewportState = &view;
  info.pRasterizationState = &raster;
  info.pMultisampleState = &samples;
  info.pColorBlendState = &blending;
  info.layout = layout_;
  info.renderPass = pass_;
  expect(vk_.vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_), "vkCreateGraphicsPipelines");
  for (auto& stage : stages) vk_.vkDestroyShaderModule(device_, stage.module, nullptr);
}

void OverlapLoad::draw(VkCommandBuffer commands, std::uint64_t frame, std::int32_t rounds) {
  const auto first = static_cast<std::uint32_t>(frame % kFrames) * 2;
  vk_.vkCmdResetQueryPool(commands, queries_, first, 2);
  vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, first);
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = pass_;
  begin.framebuffer = framebuffer_;
  begin.renderArea = {{0, 0}, {side_, side_}};
  vk_.vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof rounds, &rounds);
  vk_.vkCmdDraw(commands, 3, 1, 0, 0);
  vk_.vkCmdEndRenderPass(commands);
  vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, first + 1);
}

double OverlapLoad::gpu_us(std::uint64_t frame) const {
  std::uint64_t ticks[2]{};
  const VkResult result = vk_.vkGetQueryPoolResults(device_, queries_, static_cast<std::uint32_t>(frame % kFrames) * 2, 2, sizeof ticks, ticks, sizeof ticks[0],
                                                    VK_QUERY_RESULT_64_BIT);
  EXPECT_EQ(result, VK_SUCCESS);
  return static_cast<double>(ticks[1] - ticks[0]) * period_ns_ / 1e3;
}

}  // namespace imprint::bridge

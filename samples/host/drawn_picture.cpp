#include "drawn_picture.h"

#include <vector>

namespace {

// Every device can draw into it, and its copy is already the network's float input.
constexpr VkFormat kFormat = VK_FORMAT_R32_SFLOAT;

}  // namespace

bool DrawnPicture::make(VkPhysicalDevice physical_device, VkDevice device, std::uint32_t width,
                        std::uint32_t height) {
  width_ = width;
  height_ = height;
  physical_device_ = physical_device;
  device_ = device;
  return make_target() && make_buffer();
}

bool DrawnPicture::allocate(const VkMemoryRequirements& needs, VkDeviceMemory& memory) const {
  VkPhysicalDeviceMemoryProperties properties{};
  vkGetPhysicalDeviceMemoryProperties(physical_device_, &properties);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = needs.size;
  const auto serves = [&](std::uint32_t type) {
    return needs.memoryTypeBits >> type & 1u &&
           properties.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  };
  while (info.memoryTypeIndex < properties.memoryTypeCount && !serves(info.memoryTypeIndex))
    ++info.memoryTypeIndex;
  return vkAllocateMemory(device_, &info, nullptr, &memory) == VK_SUCCESS;
}

bool DrawnPicture::make_target() {
  VkImageCreateInfo image{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  image.imageType = VK_IMAGE_TYPE_2D;
  image.format = kFormat;
  image.extent = {width_, height_, 1};
  image.mipLevels = image.arrayLayers = 1;
  image.samples = VK_SAMPLE_COUNT_1_BIT;
  image.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  if (vkCreateImage(device_, &image, nullptr, &image_) != VK_SUCCESS) return false;
  VkMemoryRequirements needs{};
  vkGetImageMemoryRequirements(device_, image_, &needs);
  if (!allocate(needs, image_memory_) || vkBindImageMemory(device_, image_, image_memory_, 0) != VK_SUCCESS)
    return false;
  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = kFormat;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  if (vkCreateImageView(device_, &view, nullptr, &image_view_) != VK_SUCCESS) return false;

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
  // Order: the last frame's copy, this frame's picture, its copy.
  const VkPipelineStageFlags draws = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
                             copies = VK_PIPELINE_STAGE_TRANSFER_BIT;
  const VkSubpassDependency dependencies[] = {
      {VK_SUBPASS_EXTERNAL, 0, copies, draws, VK_ACCESS_TRANSFER_READ_BIT,
       VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0},
      {0, VK_SUBPASS_EXTERNAL, draws, copies, VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
       VK_ACCESS_TRANSFER_READ_BIT, 0}};
  VkRenderPassCreateInfo pass{VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO};
  pass.attachmentCount = pass.subpassCount = 1;
  pass.pAttachments = &colour;
  pass.pSubpasses = &subpass;
  pass.dependencyCount = 2;
  pass.pDependencies = dependencies;
  if (vkCreateRenderPass(device_, &pass, nullptr, &pass_) != VK_SUCCESS) return false;
  VkFramebufferCreateInfo framebuffer{VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
  framebuffer.renderPass = pass_;
  framebuffer.attachmentCount = 1;
  framebuffer.pAttachments = &image_view_;
  framebuffer.width = width_;
  framebuffer.height = height_;
  framebuffer.layers = 1;
  return vkCreateFramebuffer(device_, &framebuffer, nullptr, &framebuffer_) == VK_SUCCESS;
}

bool DrawnPicture::make_buffer() {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes();
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (vkCreateBuffer(device_, &info, nullptr, &buffer_) != VK_SUCCESS) return false;
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, buffer_, &needs);
  return allocate(needs, buffer_memory_) &&
         vkBindBufferMemory(device_, buffer_, buffer_memory_, 0) == VK_SUCCESS;
}

void DrawnPicture::destroy() {
  if (!device_) return;
  vkDestroyFramebuffer(device_, framebuffer_, nullptr);
  vkDestroyRenderPass(device_, pass_, nullptr);
  vkDestroyImageView(device_, image_view_, nullptr);
  vkDestroyImage(device_, image_, nullptr);
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, image_memory_, nullptr);
  vkFreeMemory(device_, buffer_memory_, nullptr);
}

void DrawnPicture::draw(VkCommandBuffer commands, std::span<const VkRect2D> bright) const {
  VkClearValue dark{};
  VkRenderPassBeginInfo begin{VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO};
  begin.renderPass = pass_;
  begin.framebuffer = framebuffer_;
  begin.renderArea = {{0, 0}, {width_, height_}};
  begin.clearValueCount = 1;
  begin.pClearValues = &dark;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  VkClearAttachment light{VK_IMAGE_ASPECT_COLOR_BIT, 0, {}};
  light.clearValue.color.float32[0] = 1;
  std::vector<VkClearRect> rectangles;
  for (const VkRect2D& rectangle : bright) rectangles.push_back({rectangle, 0, 1});
  if (!rectangles.empty())
    vkCmdClearAttachments(commands, 1, &light, static_cast<std::uint32_t>(rectangles.size()),
                          rectangles.data());
  vkCmdEndRenderPass(commands);
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {width_, height_, 1};
  vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, buffer_, 1, &region);
}

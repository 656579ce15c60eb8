#include "samples/pet/view/render/vulkan_host_memory.h"

#include <cstring>

namespace pet {
namespace {

Result<VkDeviceMemory> allocate(const VulkanHost& host, const VkMemoryRequirements& needs,
                                VkMemoryPropertyFlags properties) {
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = needs.size;
  PET_ASSIGN(info.memoryTypeIndex, host.memory_type(needs.memoryTypeBits, properties));
  VkDeviceMemory memory = VK_NULL_HANDLE;
  PET_CHECK(check(vkAllocateMemory(host.device(), &info, nullptr, &memory), "vkAllocateMemory"));
  return memory;
}

}  // namespace

Result<GpuBuffer> GpuBuffer::create(const VulkanHost& host, VkDeviceSize size, VkBufferUsageFlags usage,
                                    bool host_visible) {
  GpuBuffer made;
  made.device_ = host.device();
  made.size_ = size;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = usage;
  PET_CHECK(check(vkCreateBuffer(made.device_, &info, nullptr, &made.buffer_), "vkCreateBuffer"));
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(made.device_, made.buffer_, &needs);
  PET_ASSIGN(made.memory_, allocate(host, needs,
                                    host_visible ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                                                 : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  PET_CHECK(check(vkBindBufferMemory(made.device_, made.buffer_, made.memory_, 0), "vkBindBufferMemory"));
  if (host_visible)
    PET_CHECK(
        check(vkMapMemory(made.device_, made.memory_, 0, VK_WHOLE_SIZE, 0, &made.mapped_), "vkMapMemory"));
  return made;
}

GpuBuffer::~GpuBuffer() {
  if (!device_) return;
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

void GpuBuffer::swap(GpuBuffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
}

Result<GpuImage> GpuImage::create(const VulkanHost& host, VkExtent2D extent, VkFormat format,
                                  VkImageUsageFlags usage, VkImageAspectFlags aspect,
                                  VkSampleCountFlagBits samples) {
  GpuImage made;
  made.device_ = host.device();
  VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = format;
  info.extent = {extent.width, extent.height, 1};
  info.mipLevels = 1;
  info.arrayLayers = 1;
  info.samples = samples;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = usage;
  PET_CHECK(check(vkCreateImage(made.device_, &info, nullptr, &made.image_), "vkCreateImage"));
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(made.device_, made.image_, &needs);
  PET_ASSIGN(made.memory_, allocate(host, needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  PET_CHECK(check(vkBindImageMemory(made.device_, made.image_, made.memory_, 0), "vkBindImageMemory"));

  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = made.image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = format;
  view.subresourceRange = {aspect, 0, 1, 0, 1};
  PET_CHECK(check(vkCreateImageView(made.device_, &view, nullptr, &made.view_), "vkCreateImageView"));
  return made;
}

GpuImage::~GpuImage() {
  if (!device_) return;
  vkDestroyImageView(device_, view_, nullptr);
  vkDestroyImage(device_, image_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

void GpuImage::swap(GpuImage& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(image_, other.image_);
  std::swap(view_, other.view_);
  std::swap(memory_, other.memory_);
}

Result<GpuBuffer> upload(VulkanHost& host, const void* data, std::size_t size, VkBufferUsageFlags usage) {
  PET_ASSIGN(const GpuBuffer staging, GpuBuffer::create(host, size, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, true));
  std::memcpy(staging.data(), data, size);
  PET_ASSIGN(GpuBuffer buffer,
             GpuBuffer::create(host, size, usage | VK_BUFFER_USAGE_TRANSFER_DST_BIT, false));
  const Result<> copied = host.run_once([&](VkCommandBuffer commands) {
    const VkBufferCopy whole{0, 0, size};
    vkCmdCopyBuffer(commands, staging.buffer(), buffer.buffer(), 1, &whole);
    // Makes the copy visible to later submissions on the queue.
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
  });
  if (!copied) return copied.error();
  return buffer;
}

}  // namespace pet

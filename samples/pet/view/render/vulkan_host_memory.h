#pragma once
// Buffers and images that own their memory: one allocation each, since there are few.

#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "samples/pet/view/render/vulkan_host.h"

namespace pet {

// Destroying does not wait: the GPU must have finished with it.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  // Host-visible memory stays mapped. Device memory is filled with upload().
  static Result<GpuBuffer> create(const VulkanHost& host, VkDeviceSize size, VkBufferUsageFlags usage,
                                  bool host_visible);
  ~GpuBuffer();
  GpuBuffer(GpuBuffer&& other) noexcept { swap(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  VkBuffer buffer() const { return buffer_; }
  VkDeviceSize size() const { return size_; }
  void* data() const { return mapped_; }

 private:
  void swap(GpuBuffer& other) noexcept;
  VkDevice device_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkDeviceSize size_ = 0;
  void* mapped_ = nullptr;
};

class GpuImage {
 public:
  GpuImage() = default;
  static Result<GpuImage> create(const VulkanHost& host, VkExtent2D extent, VkFormat format,
                                 VkImageUsageFlags usage, VkImageAspectFlags aspect,
                                 VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT);
  ~GpuImage();
  GpuImage(GpuImage&& other) noexcept { swap(other); }
  GpuImage& operator=(GpuImage&& other) noexcept {
    swap(other);
    return *this;
  }

  VkImage image() const { return image_; }
  VkImageView view() const { return view_; }

 private:
  void swap(GpuImage& other) noexcept;
  VkDevice device_ = VK_NULL_HANDLE;
  VkImage image_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

// Copies bytes into a new device-local buffer, and waits.
Result<GpuBuffer> upload(VulkanHost& host, const void* data, std::size_t size, VkBufferUsageFlags usage);

}  // namespace pet

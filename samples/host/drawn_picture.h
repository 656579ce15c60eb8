#pragma once
// A picture that a game draws on the GPU and copies into a buffer, for brains with eyes. No Imprint here.

#include <volk.h>

#include <cstdint>
#include <span>

class DrawnPicture {
 public:
  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }
  VkDeviceSize bytes() const { return VkDeviceSize{width_} * height_ * sizeof(float); }

  // False when Vulkan refused something.
  bool make(VkPhysicalDevice physical_device, VkDevice device, std::uint32_t width, std::uint32_t height);
  void destroy();  // after the GPU has finished

  // Draws the rectangles, 1 on a ground of 0, then copies the picture into buffer(): rows of floats. They lie
  // inside the picture.
  void draw(VkCommandBuffer commands, std::span<const VkRect2D> bright) const;
  VkBuffer buffer() const { return buffer_; }

 private:
  bool make_target();
  bool make_buffer();
  bool allocate(const VkMemoryRequirements& needs, VkDeviceMemory& memory) const;

  std::uint32_t width_ = 0, height_ = 0;  // pixels
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory image_memory_ = VK_NULL_HANDLE, buffer_memory_ = VK_NULL_HANDLE;
  VkImageView image_view_ = VK_NULL_HANDLE;
  VkRenderPass pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
};

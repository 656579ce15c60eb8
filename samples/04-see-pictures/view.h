#pragma once
// The creature's view: a small picture that the host draws and copies into a buffer. No Imprint here.

#include <volk.h>

#include <cstdint>

class View {
 public:
  static constexpr std::int32_t kReach = 4;  // fields that it sees in each direction
  // Pixels, one float each: 11 along each side, or 84.
  explicit View(bool large) : field_(large ? 9 : 1), light_(large ? 12 : 3) {}
  std::uint32_t side() const { return 2u * kReach * field_ + light_; }
  VkDeviceSize bytes() const { return VkDeviceSize{side()} * side() * sizeof(float); }

  // False when Vulkan refused something.
  bool make(VkPhysicalDevice physical_device, VkDevice device);
  void destroy();  // after the GPU has finished

  // Draws a light x fields to the right and y down (-kReach .. kReach), then copies the picture into buffer()
  // by rows.
  void draw(VkCommandBuffer commands, std::int32_t x, std::int32_t y) const;
  VkBuffer buffer() const { return buffer_; }

 private:
  bool make_target();
  bool make_buffer();
  bool allocate(const VkMemoryRequirements& needs, VkDeviceMemory& memory) const;

  std::uint32_t field_, light_;  // their sides, in pixels
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory image_memory_ = VK_NULL_HANDLE, buffer_memory_ = VK_NULL_HANDLE;
  VkImageView image_view_ = VK_NULL_HANDLE;
  VkRenderPass pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
};

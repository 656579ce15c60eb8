#pragma once
// An image that a host draws into, with its render pass, and a graphics pipeline for it. Functions come from
// the host's vkGetDeviceProcAddr, so it works with any loader. Failures are gtest failures.

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>

namespace imprint::hosts {

#define HOSTS_DRAW_FUNCTIONS(FUNCTION)   \
  FUNCTION(vkCreateImage)                \
  FUNCTION(vkDestroyImage)               \
  FUNCTION(vkGetImageMemoryRequirements) \
  FUNCTION(vkAllocateMemory)             \
  FUNCTION(vkFreeMemory)                 \
  FUNCTION(vkBindImageMemory)            \
  FUNCTION(vkCreateImageView)            \
  FUNCTION(vkDestroyImageView)           \
  FUNCTION(vkCreateRenderPass)           \
  FUNCTION(vkDestroyRenderPass)          \
  FUNCTION(vkCreateFramebuffer)          \
  FUNCTION(vkDestroyFramebuffer)         \
  FUNCTION(vkCreateShaderModule)         \
  FUNCTION(vkDestroyShaderModule)        \
  FUNCTION(vkCreatePipelineLayout)       \
  FUNCTION(vkDestroyPipelineLayout)      \
  FUNCTION(vkCreateGraphicsPipelines)    \
  FUNCTION(vkDestroyPipeline)            \
  FUNCTION(vkCmdBindPipeline)            \
  FUNCTION(vkCmdSetViewport)             \
  FUNCTION(vkCmdSetScissor)              \
  FUNCTION(vkCmdPushConstants)           \
  FUNCTION(vkCmdDraw)                    \
  FUNCTION(vkCmdBeginRenderPass)         \
  FUNCTION(vkCmdEndRenderPass)           \
  FUNCTION(vkCmdCopyImageToBuffer)

struct DrawFunctions {
#define HOSTS_MEMBER(name) PFN_##name name = nullptr;
  HOSTS_DRAW_FUNCTIONS(HOSTS_MEMBER)
#undef HOSTS_MEMBER
  static DrawFunctions load(PFN_vkGetDeviceProcAddr get, VkDevice device);
};

// Four bytes per pixel. Each pass clears it and leaves it as a copy source.
class ColourTarget {
 public:
  static constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

  ColourTarget() = default;
  // Allocates at least `least_bytes`, like an engine's blocks: the best-practice checks expect that.
  void make(PFN_vkGetDeviceProcAddr get, VkDevice device, VkExtent2D extent,
            VkDeviceSize least_bytes = 2 << 20);
  void destroy();  // the device has finished with it

  const DrawFunctions& functions() const { return f_; }
  VkImage image() const { return image_; }
  VkRenderPass render_pass() const { return pass_; }

  void begin(VkCommandBuffer commands, const VkClearColorValue& clear = {}) const;  // the render pass
  void end(VkCommandBuffer commands) const;
  void use_whole(VkCommandBuffer commands) const;            // viewport and scissor
  void copy(VkCommandBuffer commands, VkBuffer into) const;  // after end(); waits for nothing else

 private:
  void make_image(VkDeviceSize least_bytes);
  void make_pass();

  DrawFunctions f_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkExtent2D extent_{};
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkRenderPass pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
};

// Draws in a ColourTarget's pass, without depth or blending; viewport and scissor are dynamic.
struct DrawPipelineDescription {
  std::span<const std::uint32_t> vertex_shader, fragment_shader;
  VkPrimitiveTopology topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  VkPushConstantRange push_constants{};                            // size 0: none
  const VkPipelineVertexInputStateCreateInfo* vertices = nullptr;  // null: none
};
class DrawPipeline {
 public:
  void make(const DrawFunctions& functions, VkDevice device, VkRenderPass pass,
            const DrawPipelineDescription& description);
  void destroy();  // the device has finished with it; may not exist
  VkPipeline handle() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }

 private:
  VkShaderModule make_module(std::span<const std::uint32_t> words) const;

  DrawFunctions f_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace imprint::hosts

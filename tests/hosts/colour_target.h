#pragma once
// What hosts draw into and with: an image of their own with its render pass, and a graphics pipeline for it.
// Functions come from the host's own vkGetDeviceProcAddr, so it works with whatever loader the host has.
// Failures are gtest failures.

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

// Four bytes a pixel, cleared by each pass and left as a source of copies.
class ColourTarget {
 public:
  static constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

  ColourTarget() = default;
  // Memory of at least `least_bytes`, as an engine's blocks are: the best-practice checks ask for them.
  void make(PFN_vkGetDeviceProcAddr get, VkDevice device, VkExtent2D extent,
            VkDeviceSize least_bytes = 2 << 20);
  void destroy();  // the device is done with it

  const DrawFunctions& functions() const { return f_; }
  VkImage image() const { return image_; }
  VkRenderPass render_pass() const { return pass_; }

  void begin(VkCommandBuffer commands, const VkClearColorValue& clear = {}) const;  // the render pass
  void end(VkCommandBuffer commands) const;
  void use_whole(VkCommandBuffer commands) const;            // viewport and scissor
  void copy(VkCommandBuffer commands, VkBuffer into) const;  // behind end(); waits for nothing else

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

// Into a ColourTarget's pass, without depth and blending; viewport and scissor are dynamic.
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
  void destroy();  // the device is done with it; nothing where none was made
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

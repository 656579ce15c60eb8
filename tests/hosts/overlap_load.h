#pragma once
// A picture that takes a GPU as long as it is told to, with the time that it took.

#include <array>
#include <cstdint>

#include "tests/hosts/plain_host.h"

namespace imprint::bridge {

class OverlapLoad {
 public:
  OverlapLoad(PlainHost& host, std::uint32_t side);  // pixels; failures are gtest failures
  ~OverlapLoad();                                    // the device is idle
  OverlapLoad(const OverlapLoad&) = delete;
  OverlapLoad& operator=(const OverlapLoad&) = delete;

  void draw(VkCommandBuffer commands, std::uint64_t frame, std::int32_t rounds);
  // GPU microseconds of a frame's picture, once that is complete and before the one of kFrames later.
  double gpu_us(std::uint64_t frame) const;

 private:
  static constexpr std::uint32_t kFrames = 4;

  void make_target();
  void make_pipeline();

  PlainHost& host_;
  const VolkDeviceTable& vk_;
  VkDevice device_;
  std::uint32_t side_;
  double period_ns_ = 0;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkRenderPass pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace imprint::bridge

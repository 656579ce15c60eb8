#pragma once
// A picture that takes the GPU a chosen time, and the time that it took.

#include <array>
#include <cstdint>

#include "tests/hosts/colour_target.h"
#include "tests/hosts/plain_host.h"

namespace imprint::bridge {

class OverlapLoad {
 public:
  OverlapLoad(PlainHost& host, std::uint32_t side);  // pixels; failures are gtest failures
  ~OverlapLoad();                                    // the device must be idle
  OverlapLoad(const OverlapLoad&) = delete;
  OverlapLoad& operator=(const OverlapLoad&) = delete;

  void draw(VkCommandBuffer commands, std::uint64_t frame, std::int32_t rounds);
  // GPU microseconds of a frame's picture. Call once it is complete, and before the frame kFrames later.
  double gpu_us(std::uint64_t frame) const;

 private:
  static constexpr std::uint32_t kFrames = 4;

  PlainHost& host_;
  const VolkDeviceTable& vk_;
  VkDevice device_;
  double period_ns_ = 0;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  hosts::ColourTarget target_;
  hosts::DrawPipeline pipeline_;
};

}  // namespace imprint::bridge

#include "tests/hosts/overlap_load.h"

#include <gtest/gtest.h>

#include "shaders/overlap_load_frag.h"
#include "shaders/overlap_load_vert.h"

namespace imprint::bridge {
namespace {

void expect(VkResult result, const char* what) { EXPECT_EQ(result, VK_SUCCESS) << what; }

}  // namespace

OverlapLoad::OverlapLoad(PlainHost& host, std::uint32_t side)
    : host_(host), vk_(host.vk()), device_(host.device()) {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(host.physical_device(), &properties);
  period_ns_ = properties.limits.timestampPeriod;
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2 * kFrames;
  expect(vk_.vkCreateQueryPool(device_, &info, nullptr, &queries_), "vkCreateQueryPool");
  target_.make(vkGetDeviceProcAddr, device_, {side, side});
  hosts::DrawPipelineDescription description;
  description.vertex_shader = overlap_load_vert;
  description.fragment_shader = overlap_load_frag;
  description.push_constants = {VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(std::int32_t)};
  pipeline_.make(target_.functions(), device_, target_.render_pass(), description);
}

OverlapLoad::~OverlapLoad() {
  host_.wait_idle();
  pipeline_.destroy();
  target_.destroy();
  vk_.vkDestroyQueryPool(device_, queries_, nullptr);
}

void OverlapLoad::draw(VkCommandBuffer commands, std::uint64_t frame, std::int32_t rounds) {
  const auto first = static_cast<std::uint32_t>(frame % kFrames) * 2;
  vk_.vkCmdResetQueryPool(commands, queries_, first, 2);
  vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, first);
  target_.begin(commands);
  target_.use_whole(commands);
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_.handle());
  vk_.vkCmdPushConstants(commands, pipeline_.layout(), VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof rounds,
                         &rounds);
  vk_.vkCmdDraw(commands, 3, 1, 0, 0);
  target_.end(commands);
  vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, first + 1);
}

double OverlapLoad::gpu_us(std::uint64_t frame) const {
  std::uint64_t ticks[2]{};
  const VkResult result =
      vk_.vkGetQueryPoolResults(device_, queries_, static_cast<std::uint32_t>(frame % kFrames) * 2, 2,
                                sizeof ticks, ticks, sizeof ticks[0], VK_QUERY_RESULT_64_BIT);
  EXPECT_EQ(result, VK_SUCCESS);
  return static_cast<double>(ticks[1] - ticks[0]) * period_ns_ / 1e3;
}

}  // namespace imprint::bridge

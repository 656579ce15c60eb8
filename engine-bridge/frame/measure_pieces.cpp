#include "engine-bridge/frame/measure_pieces.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "compute/vk/handle.h"
#include "engine-bridge/frame/command_set.h"
#include "engine-bridge/frame/gpu_timer.h"

namespace imprint::bridge {
namespace {

constexpr int kTimedRuns = 3;  // the first one fills caches and may run the driver's compiler
constexpr std::uint64_t kTimeoutNs = 60ull * 1000 * 1000 * 1000;

}  // namespace

Result<std::vector<float>> measure_pieces(vk::Device& device, vk::Queue& queue, Runtime& runtime,
                                          const Program& program) {
  const vk::Functions& f = device.functions();
  const std::span<const VkCommandBuffer> pieces =
      program.pieces(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY)
          .first(std::min(program.first_state_write(), program.piece_count()));
  std::vector<float> best;
  if (pieces.empty()) return best;

  const auto query_count = static_cast<std::uint32_t>(pieces.size()) + 1;
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = query_count;
  IMPRINT_ASSIGN(auto queries, vk::make_handle<VkQueryPool>(device, "vkCreateQueryPool", f.vkCreateQueryPool,
                                                            f.vkDestroyQueryPool, info));
  IMPRINT_ASSIGN(auto stamps, CommandSet::create(device));

  std::vector<VkCommandBuffer> list;
  if (!f.vkResetQueryPool) {
    IMPRINT_ASSIGN(const VkCommandBuffer reset,
                   stamps->record(VK_COMMAND_BUFFER_LEVEL_PRIMARY, false, [&](VkCommandBuffer commands) {
                     f.vkCmdResetQueryPool(commands, queries.get(), 0, query_count);
                   }));
    list.push_back(reset);
  }
  list.push_back(runtime.barrier().primary);
  for (std::uint32_t i = 0; i < query_count; ++i) {
    IMPRINT_ASSIGN(const VkCommandBuffer stamp,
                   stamps->record(VK_COMMAND_BUFFER_LEVEL_PRIMARY, false, [&](VkCommandBuffer commands) {
                     f.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries.get(), i);
                   }));
    list.push_back(stamp);
    if (i < pieces.size()) list.push_back(pieces[i]);
  }

  std::vector<std::uint64_t> times(query_count);
  for (int run = 0; run < kTimedRuns; ++run) {
    if (f.vkResetQueryPool) f.vkResetQueryPool(device.handle(), queries.get(), 0, query_count);
    IMPRINT_ASSIGN(const vk::Ticket ticket, queue.submit(list));
    if (Result<> waited = queue.wait(ticket, kTimeoutNs); !waited.ok()) {
      // It may still run, for example after a recorded frame that is not safe yet. Keep what it uses until
      // then.
      auto used = std::make_shared<std::pair<decltype(queries), std::decay_t<decltype(stamps)>>>(
          std::move(queries), std::move(stamps));
      device.retire(ticket, [used] {});
      return std::move(waited).error();
    }
    const VkResult result = f.vkGetQueryPoolResults(device.handle(), queries.get(), 0, query_count,
                                                    times.size() * sizeof times[0], times.data(),
                                                    sizeof times[0], VK_QUERY_RESULT_64_BIT);
    if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkGetQueryPoolResults", result);
    if (best.empty()) best.assign(pieces.size(), std::numeric_limits<float>::max());
    for (std::size_t i = 0; i < pieces.size(); ++i)
      best[i] = std::min(best[i], timestamp_us(device.capabilities(), times[i], times[i + 1]));
  }
  return best;
}

}  // namespace imprint::bridge

#include "compute/tuning/tuner_timer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "compute/vk/timestamps.h"

namespace imprint {

using namespace program;
using namespace tuning;

namespace {

constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
constexpr double kWorthTimingUs = 200;  // shorter runs repeat within a submission
constexpr double kMostInARow = 32;
constexpr double kOnceIsEnoughUs = 200e3;                     // a run this long is timed only once
constexpr double kMostRiseSeconds = 3;                        // per wait for the clock
constexpr double kShareOfFirst = 0.2, kShareOfOthers = 0.02;  // of all seconds, for raising the clock: before
                                                              // a program's first time, and each variant's

std::uint32_t in_a_row(double us) {
  return static_cast<std::uint32_t>(
      std::clamp(std::ceil(kWorthTimingUs / std::max(us, 1e-3)), 1.0, kMostInARow));
}

}  // namespace

Result<std::unique_ptr<TuningTimer>> TuningTimer::create(RuntimeImpl& runtime, vk::Queue& queue,
                                                         double seconds) {
  vk::Device& device = runtime.device();
  if (device.capabilities().timestamp_valid_bits == 0)
    return make_error(ErrorCode::unsupported,
                      "tuning: found no timestamps in queue family " + std::to_string(queue.family()) +
                          " of " + device.capabilities().device_name + ", expected them for measuring");
  IMPRINT_ASSIGN(ClockProbe probe, ClockProbe::create(runtime));
  std::unique_ptr<TuningTimer> timer(new TuningTimer(runtime, queue, std::move(probe), seconds));
  const vk::Functions& f = device.functions();
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = device.queue_family();
  IMPRINT_ASSIGN(timer->pool_,
                 vk::make_handle<VkCommandPool>(device, "vkCreateCommandPool", f.vkCreateCommandPool,
                                                f.vkDestroyCommandPool, pool));
  VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2;
  IMPRINT_ASSIGN(timer->queries_,
                 vk::make_handle<VkQueryPool>(device, "vkCreateQueryPool", f.vkCreateQueryPool,
                                              f.vkDestroyQueryPool, queries));
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = timer->pool_.get();
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  const VkResult result = f.vkAllocateCommandBuffers(device.handle(), &allocate, &timer->buffer_);
  if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkAllocateCommandBuffers", result);
  return timer;
}

// Submitted work may still run, for example after a recorded frame that the host has not yet called safe. Its
// objects are destroyed when it completes.
TuningTimer::~TuningTimer() {
  auto used = std::make_shared<std::pair<vk::Handle<VkCommandPool>, vk::Handle<VkQueryPool>>>(
      std::move(pool_), std::move(queries_));
  runtime_.device().retire(runtime_.device().last_ticket(), [used] {});
}

Result<> TuningTimer::upload() {
  IMPRINT_ASSIGN(const Commands uploads, stream_uploads(runtime_, queue_));
  if (!uploads.primary) return {};
  const Result<vk::Ticket> ticket = queue_.submit(std::span(&uploads.primary, 1));
  if (ticket) return {};
  runtime_.put_back_uploads(uploads);
  return ticket.error();
}

Result<> TuningTimer::raise_clock(double share) {
  return probe_.raise([this](std::span<const VkCommandBuffer> commands,
                             std::uint32_t times) { return submit(commands, times); },
                      std::chrono::duration<double>(std::min(kMostRiseSeconds, share * seconds_)));
}

Result<double> TuningTimer::time(VkCommandBuffer usual, std::uint32_t runs) {
  IMPRINT_CHECK(upload());
  IMPRINT_CHECK(run(usual, 1));  // warms caches; on a software device, runs the driver's compiler
  IMPRINT_CHECK(raise_clock(kShareOfFirst));
  IMPRINT_ASSIGN(const double about, run(usual, 1));
  double best = std::numeric_limits<double>::max();
  for (std::uint32_t turn = 0; turn < runs; ++turn) {
    IMPRINT_ASSIGN(const double us, run(usual, in_a_row(about)));
    best = std::min(best, us);
    if (us > kOnceIsEnoughUs) break;
  }
  return best;
}

Result<TuningTimer::Times> TuningTimer::compare(VkCommandBuffer usual, VkCommandBuffer other,
                                                std::uint32_t runs) {
  IMPRINT_CHECK(upload());
  IMPRINT_CHECK(run(other, 1));  // as in time()
  IMPRINT_CHECK(raise_clock(kShareOfOthers));
  IMPRINT_ASSIGN(const double others_about, run(other, 1));
  IMPRINT_ASSIGN(const double usual_about, run(usual, 1));
  Times best{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (std::uint32_t turn = 0; turn < runs; ++turn) {
    IMPRINT_ASSIGN(const double others, run(other, in_a_row(others_about)));
    IMPRINT_ASSIGN(const double own, run(usual, in_a_row(usual_about)));
    best = {std::min(best.usual, own), std::min(best.other, others)};
    if (own + others > kOnceIsEnoughUs) break;
  }
  return best;
}

Result<double> TuningTimer::run(VkCommandBuffer commands, std::uint32_t times) {
  ++runs_;
  return submit(std::span(&commands, 1), times);
}

Result<double> TuningTimer::submit(std::span<const VkCommandBuffer> commands, std::uint32_t times) {
  vk::Device& device = runtime_.device();
  const vk::Functions& f = device.functions();
  const auto check = [&](const char* call, VkResult result) {
    return result == VK_SUCCESS ? Result<>{} : Result<>{vk::vulkan_error(device, call, result)};
  };
  IMPRINT_CHECK(check("vkResetCommandPool", f.vkResetCommandPool(device.handle(), pool_.get(), 0)));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  IMPRINT_CHECK(check("vkBeginCommandBuffer", f.vkBeginCommandBuffer(buffer_, &begin)));
  f.vkCmdResetQueryPool(buffer_, queries_.get(), 0, 2);
  f.vkCmdWriteTimestamp(buffer_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.get(), 0);
  for (std::uint32_t run = 0; run < times; ++run)
    f.vkCmdExecuteCommands(buffer_, static_cast<std::uint32_t>(commands.size()), commands.data());
  f.vkCmdWriteTimestamp(buffer_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.get(), 1);
  IMPRINT_CHECK(check("vkEndCommandBuffer", f.vkEndCommandBuffer(buffer_)));
  IMPRINT_ASSIGN(const vk::Ticket ticket, queue_.submit(std::span(&buffer_, 1)));
  IMPRINT_CHECK(queue_.wait(ticket, kTimeoutNs));
  device.collect();
  std::array<std::uint64_t, 2> stamps{};
  IMPRINT_CHECK(check("vkGetQueryPoolResults",
                      f.vkGetQueryPoolResults(device.handle(), queries_.get(), 0, 2, sizeof stamps,
                                              stamps.data(), sizeof stamps[0], VK_QUERY_RESULT_64_BIT)));
  return vk::elapsed_us(device.capabilities(), stamps[0], stamps[1]) / times;
}

}  // namespace imprint

#include "tools/imprint/bench_timer.h"

#include <time.h>

#include <array>
#include <chrono>
#include <optional>

#include "compute/tuning/clock_probe.h"
#include "tools/imprint/seconds.h"

namespace imprint::tools {

using namespace tuning;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
constexpr std::chrono::seconds kMostRise{4};  // of the clock

class Timer final : public GpuTimer {
 public:
  explicit Timer(bridge::Context& context)
      : context_(context), device_(context.device()), f_(device_.functions()) {}

  ~Timer() override {
    const VkAllocationCallbacks* callbacks = device_.allocation_callbacks();
    if (queries_) f_.vkDestroyQueryPool(device_.handle(), queries_, callbacks);
    if (commands_) f_.vkDestroyCommandPool(device_.handle(), commands_, callbacks);
  }

  Result<> init() {
    const vk::Capabilities& capabilities = device_.capabilities();
    if (capabilities.timestamp_valid_bits == 0) {
      return make_error(ErrorCode::unsupported, "queue family " + std::to_string(device_.queue_family()) +
                                                    " of " + capabilities.device_name +
                                                    " has no timestamps: nothing to measure with");
    }
    const auto bits = capabilities.timestamp_valid_bits;
    mask_ = bits >= 64 ? ~0ull : (1ull << bits) - 1;

    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_.queue_family();
    IMPRINT_CHECK(
        check("vkCreateCommandPool",
              f_.vkCreateCommandPool(device_.handle(), &pool, device_.allocation_callbacks(), &commands_)));
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2;
    IMPRINT_CHECK(
        check("vkCreateQueryPool",
              f_.vkCreateQueryPool(device_.handle(), &queries, device_.allocation_callbacks(), &queries_)));
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = commands_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 2;
    std::array<VkCommandBuffer, 2> buffers{};
    IMPRINT_CHECK(check("vkAllocateCommandBuffers",
                        f_.vkAllocateCommandBuffers(device_.handle(), &allocate, buffers.data())));
    timed_ = buffers[0];
    probing_ = buffers[1];
    IMPRINT_ASSIGN(probe_, ClockProbe::create(context_.runtime()));
    return raise_clock();
  }

  Result<Timing> time(const Repeats& repeats, const std::function<void(VkCommandBuffer)>& body) override {
    IMPRINT_CHECK(record(timed_, body));
    Timing ignored, timing;
    const auto start = Clock::now();
    for (std::uint32_t runs = 0; runs < repeats.warmup || seconds_since(start) < 0.2; ++runs) {
      IMPRINT_CHECK(run_once(timed_, ignored));
      if (seconds_since(start) > repeats.seconds) break;
    }
    IMPRINT_CHECK(raise_clock());
    const auto measuring = Clock::now();
    for (std::uint32_t runs = 0; runs < repeats.measured; ++runs) {
      if (runs >= 10 && seconds_since(measuring) > repeats.seconds) break;
      IMPRINT_CHECK(run_once(timed_, timing));
    }
    timing.submissions = ignored.gpu_us.size() + timing.gpu_us.size();
    return timing;
  }

 private:
  Result<> check(const char* call, VkResult result) {
    if (result == VK_SUCCESS) return {};
    return vk::vulkan_error(device_, call, result);
  }

  Result<> record(VkCommandBuffer buffer, const std::function<void(VkCommandBuffer)>& body) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    IMPRINT_CHECK(check("vkBeginCommandBuffer", f_.vkBeginCommandBuffer(buffer, &begin)));
    f_.vkCmdResetQueryPool(buffer, queries_, 0, 2);
    f_.vkCmdWriteTimestamp(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 0);
    body(buffer);
    f_.vkCmdWriteTimestamp(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 1);
    return check("vkEndCommandBuffer", f_.vkEndCommandBuffer(buffer));
  }

  Result<> raise_clock() {
    const auto run = [this](std::span<const VkCommandBuffer> commands,
                            std::uint32_t times) -> Result<double> {
      IMPRINT_CHECK(record(probing_, [&](VkCommandBuffer into) {
        for (std::uint32_t i = 0; i < times; ++i)
          f_.vkCmdExecuteCommands(into, static_cast<std::uint32_t>(commands.size()), commands.data());
      }));
      Timing timing;
      IMPRINT_CHECK(run_once(probing_, timing));
      return timing.gpu_us[0] / times;
    };
    return probe_->raise(run, kMostRise);
  }

  Result<> run_once(VkCommandBuffer buffer, Timing& timing) {
    const auto wall_start = Clock::now();
    const double cpu_start = thread_cpu_us();
    IMPRINT_ASSIGN(const vk::Ticket ticket, context_.queue()->submit(std::span(&buffer, 1)));
    const double cpu = thread_cpu_us() - cpu_start;
    IMPRINT_CHECK(context_.queue()->wait(ticket, kTimeoutNs));
    const double wall = seconds_since(wall_start) * 1e6;
    device_.collect();

    std::array<std::uint64_t, 2> stamps{};
    IMPRINT_CHECK(check(
        "vkGetQueryPoolResults",
        f_.vkGetQueryPoolResults(device_.handle(), queries_, 0, 2, sizeof(stamps), stamps.data(),
                                 sizeof(stamps[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT)));
    const std::uint64_t ticks = ((stamps[1] & mask_) - (stamps[0] & mask_)) & mask_;
    timing.gpu_us.push_back(static_cast<double>(ticks) * device_.capabilities().timestamp_period_ns * 1e-3);
    timing.wall_us.push_back(wall);
    timing.cpu_us.push_back(cpu);
    return {};
  }

  bridge::Context& context_;
  vk::Device& device_;
  const vk::Functions& f_;
  std::optional<ClockProbe> probe_;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  VkCommandBuffer timed_ = VK_NULL_HANDLE, probing_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::uint64_t mask_ = 0;
};

}  // namespace

double thread_cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

Result<std::unique_ptr<GpuTimer>> GpuTimer::create(bridge::Context& context) {
  auto timer = std::make_unique<Timer>(context);
  IMPRINT_CHECK(timer->init());
  return std::unique_ptr<GpuTimer>(std::move(timer));
}

}  // namespace imprint::tools

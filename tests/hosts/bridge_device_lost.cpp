// The device is lost at the N-th call that can tell, for call after call of a whole game: reported, never a hang or a crash, and nothing of ours
// touches the device afterwards but to destroy.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>

#include "tests/hosts/plain_host.h"
#include "tests/hosts/regression.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kFirstCalls = 500;

// What stands between Imprint and the driver. Vulkan's functions carry no user pointer, so there is one.
struct Shim {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc_addr = nullptr;
  PFN_vkDeviceWaitIdle wait_idle = nullptr;
  VkDevice device = VK_NULL_HANDLE;
  std::mutex mutex;
  std::uint64_t calls = 0, lose_at = kNever;
  bool lost = false;

  bool lose() {
    const std::lock_guard lock(mutex);
    if (++calls >= lose_at && !lost) {
      lost = true;
      wait_idle(device);  // a device that is really lost has stopped too
    }
    return lost;
  }
};
Shim* shim = nullptr;

template <int Index, class F>
struct Between;
template <int Index, class... Arguments>
struct Between<Index, VkResult(VKAPI_PTR*)(Arguments...)> {
  static inline VkResult(VKAPI_PTR* real)(Arguments...) = nullptr;
  static VkResult VKAPI_CALL call(Arguments... arguments) { return shim->lose() ? VK_ERROR_DEVICE_LOST : real(arguments...); }
};

#define CALLS(X)                                                                                                                                 \
  X(vkAllocateMemory) X(vkMapMemory) X(vkCreateBuffer) X(vkBindBufferMemory) X(vkCreateShaderModule) X(vkCreateComputePipelines)                 \
  X(vkCreatePipelineLayout) X(vkCreatePipelineCache) X(vkCreateDescriptorSetLayout) X(vkCreateDescriptorPool) X(vkAllocateDescriptorSets)        \
  X(vkCreateCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkCreateQueryPool) X(vkGetQueryPoolResults) \
  X(vkCreateFence) X(vkResetFences) X(vkGetFenceStatus) X(vkWaitForFences) X(vkCreateSemaphore) X(vkQueueSubmit) X(vkGetSemaphoreCounterValue)   \
  X(vkWaitSemaphores)

PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction real = shim->get_device_proc_addr(device, name);
  if (!real) return nullptr;
#define X(function)                                                                       \
  if (std::strcmp(name, #function) == 0) {                                                \
    using Call = Between<__COUNTER__, PFN_##function>;                     \
    Call::real = reinterpret_cast<PFN_##function>(real);                                  \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(Call::call)); \
  }
  CALLS(X)
#undef X
  return real;
}

PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = shim->get_instance_proc_addr(instance, name);
  if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return real;
  shim->get_device_proc_addr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkGetDeviceProcAddr>(device_function));
}

bool is_loss(const Error& error) { return error.code == ErrorCode::device_lost; }

// One short game. Empty when all went well, else the first error.
std::optional<Error> play(PlainHost& host, std::uint64_t lose_at) {
  Shim between;
  shim = &between;
  between.lose_at = lose_at;
  ContextDescription description;
  description.device = host.describe();
  between.get_instance_proc_addr = description.device.get_instance_proc_addr;
  between.device = description.device.device;
  const auto get_device =
      reinterpret_cast<PFN_vkGetDeviceProcAddr>(between.get_instance_proc_addr(description.device.instance, "vkGetDeviceProcAddr"));
  between.wait_idle = reinterpret_cast<PFN_vkDeviceWaitIdle>(get_device(between.device, "vkDeviceWaitIdle"));
  description.device.get_instance_proc_addr = instance_function;
  description.queue.queue = host.queue();
  description.queue.family = host.family();
  description.queue.single_thread = true;
  auto adopted = Context::adopt(description);
  if (!adopted) return adopted.error();
  Context& context = **adopted;
  Regression model;
  if (const Status built = model.build(context.runtime()); !built) return built.error();
  if (const Status measured = context.measure(*model.train); !measured) return measured.error();

  std::optional<Error> first;
  for (std::uint64_t frame = 1; frame <= 30; ++frame) {
    const std::uint64_t calls = between.calls;
    const bool was_lost = first.has_value();
    const auto note = [&](const Status& status) {
      if (!status && status.error().code == ErrorCode::wrong_state) return;  // the slot is not free yet
      if (!status && !first) first = status.error();
      if (first) {
        EXPECT_TRUE(!status && is_loss(status.error())) << "a call after the loss does not report it";
      }
    };
    note(context.frame_begin({frame, 0}));
    Job job;
    job.program = &*model.train;
    job.slot = static_cast<std::uint32_t>(frame % 3);
    job.kind = JobKind::learn;
    job.deadline_frame = frame;
    note(context.enqueue(std::move(job)));
    note(context.submit(~0u));
    note(context.frame_end());
    if (was_lost) {
      EXPECT_EQ(between.calls, calls) << "a call after the loss touches the device";
    }
  }
  const Status drained = context.drain(60'000'000'000);
  if (!drained && !first) first = drained.error();
  if (!first && lose_at == kNever) {
    EXPECT_GT(between.calls, kFirstCalls) << "the game is too short to lose it at every call";
  }
  return first;
}

class DeviceLost : public testing::TestWithParam<bool> {};

TEST_P(DeviceLost, IsReportedAtWhicheverCall) {
  PlainHost host({"", GetParam() ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, GetParam(), false});
  ASSERT_TRUE(host.ok());
  const auto error = play(host, kNever);
  EXPECT_FALSE(error) << error->message;
  for (std::uint64_t call = 1; call <= kFirstCalls; ++call) {
    const auto found = play(host, call);
    ASSERT_TRUE(found) << "call " << call << " was lost unnoticed";
    EXPECT_TRUE(is_loss(*found)) << "call " << call << ": " << error_code_name(found->code) << ": " << found->message;
  }
  const auto again = play(host, kNever);
  EXPECT_FALSE(again) << again->message;
}

INSTANTIATE_TEST_SUITE_P(With, DeviceLost, testing::Bool(), [](const auto& way) { return way.param ? "timeline" : "fences"; });

}  // namespace
}  // namespace imprint::bridge

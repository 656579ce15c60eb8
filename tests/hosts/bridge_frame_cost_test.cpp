// The cost of a warm frame on the frame thread: no heap allocation, few command buffers, little time.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"
#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/regression.h"

namespace {
thread_local bool counting = false;
thread_local std::uint64_t news = 0;
}  // namespace

// Not inlined: the compiler would see new paired with free. Both are replaced, since a sanitizer's pair must
// match.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++news;
  return std::malloc(size ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace imprint::bridge {
namespace {

class T9FrameCost : public testing::TestWithParam<std::tuple<bool, bool>> {};  // everything enabled, record

TEST_P(T9FrameCost, AWarmFrameAllocatesNothing) {
  const auto [everything, record] = GetParam();
  PlainHost host({"", everything ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, everything, false});
  ASSERT_TRUE(host.ok());
  ContextDescription description;
  description.device = host.describe();
  description.queue.family = host.family();
  if (!record) {
    description.queue.queue = host.queue();
    description.queue.single_thread = true;
  }
  auto adopted = Context::adopt(description);
  ASSERT_TRUE(adopted) << adopted.error().message;
  Context& context = **adopted;
  Regression model;
  ASSERT_TRUE(model.build(context.runtime()));
  std::vector<float> cpu_us;
  int steps = 0;
  bool good = true;
  for (std::uint64_t frame = 1; frame <= 400; ++frame) {
    const VkCommandBuffer commands = host.begin_frame(frame);
    FrameJob job;
    job.program = &*model.train;
    job.slot = static_cast<std::uint32_t>(frame % 3);
    job.kind = FrameJobKind::learn;
    job.deadline_frame = frame;
    job.on_complete = [&steps](std::uint64_t) { ++steps; };
    model.fill(job.slot, static_cast<std::uint32_t>(frame));
    counting = frame > 50;
    good = good && context.frame_begin({frame, host.safe_frame()}).ok();
    counting = false;
    // A submission completes a little after the host's fence. A frame whose slot is not free yet has no step.
    if (Result<> status = context.enqueue(std::move(job));
        !status && status.error().code != ErrorCode::wrong_state)
      good = false;
    counting = frame > 50;
    good = good && (record ? context.record(commands, ~0u).ok() : context.submit(~0u).ok());
    good = good && context.frame_end().ok();
    counting = false;
    host.end_frame();
    if (frame > 50) cpu_us.push_back(context.stats().frame_cpu_us);
  }
  host.finish_frames();
  EXPECT_TRUE(good);
  EXPECT_GT(steps, 300);
  EXPECT_EQ(news, 0u);
  std::ranges::sort(cpu_us);
  RecordProperty("frame_cpu_us_median", std::to_string(cpu_us[cpu_us.size() / 2]));
}

// A host that submits for Imprint and counts command buffers.
struct Counted {
  PlainHost* host = nullptr;
  std::uint32_t submits = 0, command_buffers = 0;
};

int32_t submit_counted(void* user, VkQueue, std::uint32_t count, const void* submits, std::uint64_t fence) {
  auto& counted = *static_cast<Counted*>(user);
  const auto* infos = static_cast<const VkSubmitInfo*>(submits);
  counted.submits += count;
  for (std::uint32_t i = 0; i < count; ++i) counted.command_buffers += infos[i].commandBufferCount;
  VkFence signalled = VK_NULL_HANDLE;
  std::memcpy(&signalled, &fence, sizeof signalled);
  return counted.host->submit(count, infos, signalled);
}

// A tick: an agent decides and gets an answer; a learning step ends and the next one begins.
TEST(T9Tick, AWarmTickAllocatesNothingAndHandsOverFewCommandBuffers) {
  constexpr std::uint64_t kWarm = 400,
                          kFrames = 600;  // warm: the agent then has all the past actions that it keeps
  PlainHost host({"", VK_API_VERSION_1_3, true, false});
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  imp_vk_device_info info = device_info(host, device, IMP_QUEUE_SUBMIT_CALLBACK);
  Counted counted{&host};
  info.queue.submit = submit_counted;
  info.queue.user = &counted;
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = 1'000'000;  // everything that may run early does
  limits.max_slice_us = 0;
  auto context = game::Context::create(game::Library(imp_get_api), info, game::HostDesc(), limits);
  ASSERT_TRUE(context) << context.outcome.message();
  auto brain = context->create_brain(small_brain(1, 0, 1));
  ASSERT_TRUE(brain) << brain.outcome.message();
  auto agent = brain->create_agent();
  ASSERT_TRUE(agent) << agent.outcome.message();
  ASSERT_WORKS(context->warmup());

  std::uint64_t ticks = 0, minibatches = 0;
  for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
    host.begin_frame(frame);
    const double time_s = static_cast<double>(frame) / 2;
    const bool decides = frame % 2 == 0;
    const std::array<float, 4> seen{static_cast<float>(frame % 7), 1, 0, -1};
    counted.submits = counted.command_buffers = 0;
    counting = frame > kWarm;
    bool good = context->frame_begin(frame, time_s).ok();
    if (decides) {
      const auto act = agent->act();
      good = good && (act.outcome.ok() || frame < 5);
      good = good && agent->observe(seen).ok() && agent->feedback(frame % 3 == 0 ? 1.0f : -1.0f, time_s).ok();
    }
    good = good && context->submit().ok() && context->frame_end().ok();
    counting = false;
    host.end_frame();
    host.wait_idle();  // so that every frame finds a slot free
    ASSERT_TRUE(good) << frame;
    const std::uint64_t before = std::exchange(minibatches, brain->stats()->minibatches);
    if (!decides || minibatches == before || frame <= kWarm) continue;
    ++ticks;
    EXPECT_EQ(counted.submits, 1u);
    // Timestamps before, between and after; inference; the tail of a step; the head of the next one.
    EXPECT_LE(counted.command_buffers, 6u);
  }
  EXPECT_EQ(ticks, (kFrames - kWarm) / 2);
  EXPECT_EQ(news, 0u);
  host.finish_frames();
  ASSERT_WORKS(context->destroy());
}

INSTANTIATE_TEST_SUITE_P(Every, T9FrameCost, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& way) {
                           return std::string(std::get<0>(way.param) ? "everything" : "baseline") +
                                  (std::get<1>(way.param) ? "_record" : "_submit");
                         });

}  // namespace
}  // namespace imprint::bridge

// What a frame costs the frame thread once warm: no heap allocation of ours, and little time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tests/hosts/plain_host.h"
#include "tests/hosts/regression.h"

namespace {
thread_local bool counting = false;
thread_local std::uint64_t news = 0;
}  // namespace

// Not inlined: the compiler would otherwise see a new that is freed by free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (counting) ++news;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
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
    Job job;
    job.program = &*model.train;
    job.slot = static_cast<std::uint32_t>(frame % 3);
    job.kind = JobKind::learn;
    job.deadline_frame = frame;
    job.on_complete = [&steps](std::uint64_t) { ++steps; };
    model.fill(job.slot, static_cast<std::uint32_t>(frame));
    counting = frame > 50;
    good = good && context.frame_begin({frame, host.safe_frame()}).ok();
    counting = false;
    // A submission completes a little after the host's own fence does: where its slot is not free yet, this frame has no step.
    if (Status status = context.enqueue(std::move(job)); !status && status.error().code != ErrorCode::wrong_state) good = false;
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

INSTANTIATE_TEST_SUITE_P(Every, T9FrameCost, testing::Combine(testing::Bool(), testing::Bool()), [](const auto& way) {
  return std::string(std::get<0>(way.param) ? "everything" : "baseline") + (std::get<1>(way.param) ? "_record" : "_submit");
});

}  // namespace
}  // namespace imprint::bridge

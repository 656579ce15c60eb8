// T9. Prints what Imprint costs a host: the median and 99th percentile of ten thousand frames without it,
// with a pet's brain that infers, and with one that learns; and start-up with and without an earlier pipeline
// cache. Tests that no frame compiles, allocates or waits, and that memory does not grow.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"
#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kFrames = 10'000, kWarm = 100;
constexpr std::uint32_t kBudgetUs = 500, kSliceUs = 1000;

enum class Guest { none, infers, learns };

struct Figures {
  std::vector<double> frame_us;        // the host's thread, from begin to begin
  std::vector<double> gpu_us, cpu_us;  // Imprint's part
  imp_context_stats stats{};
  std::uint64_t minibatches = 0;
};

std::string percentiles(std::vector<double> values) {
  if (values.empty()) return "-";
  std::ranges::sort(values);
  char text[64];
  std::snprintf(text, sizeof text, "%.0f / %.0f", values[values.size() / 2],
                values[values.size() * 99 / 100]);
  return text;
}

// The pet of samples/pet in small: its observations and actions, its learner, one decision per second,
// feedback.
game::BrainDesc pet() {
  game::BrainDesc desc;
  desc.observation_count = 28;
  desc.goal_count = 6;
  desc.branch_sizes = {10};
  desc.learner = game::FeedbackOptions();
  return desc;
}

void play(bool submits, Guest guest, Figures& figures) {
  PlainHost host({"", VK_API_VERSION_1_3, true, false});
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  const imp_vk_device_info info =
      device_info(host, device, submits ? IMP_QUEUE_SINGLE_THREAD : IMP_QUEUE_RECORD_ONLY);
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = guest == Guest::learns ? kBudgetUs : 0;
  limits.max_slice_us = kSliceUs;
  game::Made<game::Context> context;
  game::Made<game::Brain> brain;
  game::Made<game::Agent> agent;
  if (guest != Guest::none) {
    context = game::Context::create(game::Library(imp_get_api), info, game::HostDesc(), limits);
    ASSERT_TRUE(context) << context.outcome.message();
    brain = context->create_brain(pet());
    ASSERT_TRUE(brain) << brain.outcome.message();
    agent = brain->create_agent();
    ASSERT_WORKS(agent.outcome);
    ASSERT_WORKS(context->warmup());
  }
  using Clock = std::chrono::steady_clock;
  std::array<float, 28> seen{};
  std::uint32_t blocks = 0;
  Clock::time_point last{};
  for (std::uint64_t frame = 1; frame <= kWarm + kFrames; ++frame) {
    const VkCommandBuffer commands = host.begin_frame(frame);
    const Clock::time_point now = Clock::now();
    if (frame > kWarm)
      figures.frame_us.push_back(std::chrono::duration<double, std::micro>(now - last).count());
    last = now;
    if (guest != Guest::none) {
      const double time_s = static_cast<double>(frame) / 60;
      ASSERT_WORKS(context->frame_begin(frame, time_s, host.safe_frame()));
      seen[frame % seen.size()] = static_cast<float>(frame % 7) / 7;
      if (frame % 60 == 1) ASSERT_WORKS(agent->observe(seen));
      if (frame % 60 == 31) {
        game::Made<game::Action> act = agent->act();
        if (act.outcome.ready())
          ASSERT_WORKS(agent->feedback(act->branches[0] == 3 ? 1.0f : -1.0f, time_s, game::Credit::current));
      }
      ASSERT_WORKS(submits ? context->submit() : context->record(commands).outcome);
      ASSERT_WORKS(context->frame_end());
      const imp_context_stats before = figures.stats;
      figures.stats = context->stats().value;
      if (frame == kWarm) blocks = figures.stats.blocks;
      if (frame > kWarm) figures.cpu_us.push_back(figures.stats.frame_cpu_us);
      if (frame > kWarm && figures.stats.measured_frame != before.measured_frame)
        figures.gpu_us.push_back(figures.stats.infer_gpu_us + figures.stats.learn_gpu_us);
    }
    host.end_frame();
  }
  host.finish_frames();
  if (guest == Guest::none) return;
  EXPECT_EQ(figures.stats.blocks, blocks);
  figures.minibatches = brain->stats()->minibatches;
  ASSERT_WORKS(context->frame_begin(kWarm + kFrames + 1, 1e4, host.safe_frame()));
  ASSERT_WORKS(context->frame_end());
  ASSERT_WORKS(context->destroy());
}

class T9Percentiles : public testing::TestWithParam<bool> {};  // true: submits, false: records

TEST_P(T9Percentiles, OfTenThousandFrames) {
  Figures none, infers, learns;
  ASSERT_NO_FATAL_FAILURE(play(GetParam(), Guest::none, none));
  ASSERT_NO_FATAL_FAILURE(play(GetParam(), Guest::infers, infers));
  ASSERT_NO_FATAL_FAILURE(play(GetParam(), Guest::learns, learns));
  for (const Figures* one : {&infers, &learns}) {
    EXPECT_EQ(one->stats.frame_compiles + one->stats.frame_allocations + one->stats.frame_waits, 0u);
  }
  EXPECT_EQ(infers.minibatches, 0u);
  EXPECT_GT(learns.minibatches, kFrames / 12);
  std::printf("%s, %llu frames, microseconds at the median / 99th percentile\n",
              GetParam() ? "own submits" : "record", static_cast<unsigned long long>(kFrames));
  std::printf("  per frame: %s without Imprint, %s when it infers, %s when it learns\n",
              percentiles(none.frame_us).c_str(), percentiles(infers.frame_us).c_str(),
              percentiles(learns.frame_us).c_str());
  for (const auto& [what, one] : {std::pair("inferring", &infers), std::pair("learning", &learns)}) {
    std::printf("  of it %s: GPU %s in %zu measured frames, frame thread %s\n", what,
                percentiles(one->gpu_us).c_str(), one->gpu_us.size(), percentiles(one->cpu_us).c_str());
  }
  std::printf("  budget %u, slices of %u at most: %llu frames over the budget, %llu minibatches\n", kBudgetUs,
              kSliceUs, static_cast<unsigned long long>(learns.stats.over_budget_frames),
              static_cast<unsigned long long>(learns.minibatches));
}

// Milliseconds from context creation to the end of warmup, on a fresh device. Uses `cache` unless empty, and
// replaces it.
void start(std::vector<char>& cache, double& ms) {
  PlainHost host({"", VK_API_VERSION_1_3, true, false});
  ASSERT_TRUE(host.ok());
  const vk::DeviceDescription device = host.describe();
  const imp_vk_device_info info = device_info(host, device, IMP_QUEUE_SINGLE_THREAD);
  const auto begin = std::chrono::steady_clock::now();
  auto context = game::Context::create(game::Library(imp_get_api), info);
  ASSERT_TRUE(context) << context.outcome.message();
  if (!cache.empty()) ASSERT_WORKS(context->set_pipeline_cache(std::as_bytes(std::span(cache))));
  auto brain = context->create_brain(pet());
  ASSERT_TRUE(brain) << brain.outcome.message();
  ASSERT_WORKS(context->warmup());
  ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  cache.resize(context->pipeline_cache().value);
  const auto filled = context->pipeline_cache(std::as_writable_bytes(std::span(cache)));
  ASSERT_WORKS(filled.outcome);
  cache.resize(filled.value);
}

TEST(T9Start, WithThePipelineCacheOfThePreviousStart) {
  std::vector<char> cache;
  double first_ms = 0, second_ms = 0;
  ASSERT_NO_FATAL_FAILURE(start(cache, first_ms));
  const std::size_t bytes = cache.size();
  ASSERT_NO_FATAL_FAILURE(start(cache, second_ms));
  std::printf("context, pet and warmup: %.0f ms, with the pipeline cache of that start, %zu bytes, %.0f ms\n",
              first_ms, bytes, second_ms);
}

INSTANTIATE_TEST_SUITE_P(By, T9Percentiles, testing::Bool(),
                         [](const auto& way) { return std::string(way.param ? "submit" : "record"); });

}  // namespace
}  // namespace imprint::bridge

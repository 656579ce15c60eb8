// Learning beside rendering: frame times without learning, with learning on the queue that draws, and on its
// own queue. Prints a table, and asserts only counts. IMPRINT_OVERLAP_FRAMES sets the frames per row.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/overlap_load.h"

namespace imprint::bridge {
namespace {

using Clock = std::chrono::steady_clock;

enum class Way { off, shared, exclusive };
constexpr const char* kWays[] = {"off", "shared queue", "own queue"};

struct Measured {
  double wall_median_us = 0, wall_p99_us = 0, picture_median_us = 0, submit_median_us = 0, learn_us = 0,
         minibatches = 0;
  std::uint64_t late = 0;
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

struct Size {
  std::uint32_t side, brains;
  std::uint64_t frames;
};

class Overlap : public testing::Test {
 protected:
  void SetUp() override {
    HostProfile profile{"overlap", VK_API_VERSION_1_3, true};
    profile.validation = false;  // its time would be measured too
    profile.second_queue = true;
    host_ = std::make_unique<PlainHost>(profile);
    ASSERT_TRUE(host_->ok());
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(host_->physical_device(), &properties);
    const bool software = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    size_ = software ? Size{64, 2, 40} : Size{1024, 256, 600};
    if (const char* frames = std::getenv("IMPRINT_OVERLAP_FRAMES"))
      size_.frames = std::strtoull(frames, nullptr, 10);
    load_ = std::make_unique<OverlapLoad>(*host_, size_.side);
    std::printf(
        "%s, pictures of %u x %u, a kennel of %u brains 28-64-64-60 with a minibatch of 32 each, %llu frames "
        "a row, host's family %u, learning's %d\n",
        properties.deviceName, size_.side, size_.side, size_.brains,
        static_cast<unsigned long long>(size_.frames), host_->family(),
        host_->second_queue() ? static_cast<int>(host_->second_family()) : -1);
  }
  void TearDown() override { load_.reset(); }

  // Iterations of the picture's shader that take about this long.
  std::int32_t rounds_for(double us) {
    std::int32_t rounds = 64;
    for (int i = 0; i < 12; ++i) {
      ++frame_;
      load_->draw(host_->begin_frame(frame_), frame_, rounds);
      host_->end_frame();
      host_->finish_frames();
      const double took = std::max(1.0, load_->gpu_us(frame_));
      rounds = static_cast<std::int32_t>(std::clamp(rounds * std::clamp(us / took, 0.25, 4.0), 1.0, 1e7));
    }
    return rounds;
  }

  imp_context adopt(Way way) {
    const vk::DeviceDescription device = host_->describe();
    imp_vk_device_info info =
        device_info(*host_, device, way == Way::exclusive ? IMP_QUEUE_EXCLUSIVE : IMP_QUEUE_SINGLE_THREAD);
    if (way == Way::exclusive) {
      info.queue.queue = host_->second_queue();
      info.queue.family = host_->second_family();
    }
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = UINT32_MAX;  // each step runs whole in its frame: only the queue differs
    limits.memory_cap_bytes = 0;
    imp_context context{};
    EXPECT_EQ(api_->context_create(&info, nullptr, &limits, &context), IMP_OK) << api_->last_error();
    return context;
  }

  imp_brain make_brain(imp_context context, std::vector<imp_agent>& agents) {
    game::BrainDesc desc;
    desc.observation_count = 28;
    desc.branch_sizes = {60};
    desc.brain_count = size_.brains;
    game::CloningOptions options;
    options.learn_period_frames = 1;
    options.replay_capacity = 64;
    desc.learner = options;
    desc.snapshot_count = 0;
    imp_brain brain{};
    EXPECT_EQ(api_->brain_create(context, c_form(desc), &brain), IMP_OK) << api_->last_error();
    agents.resize(size_.brains);
    for (std::uint32_t i = 0; i < size_.brains; ++i)
      EXPECT_EQ(api_->agent_create(brain, i, &agents[i]), IMP_OK);
    EXPECT_EQ(api_->context_warmup(context, nullptr, nullptr), IMP_OK) << api_->last_error();
    return brain;
  }

  void demonstrate(const std::vector<imp_agent>& agents, std::uint64_t frame) {
    float seen[28];
    for (std::size_t i = 0; i < agents.size(); ++i) {
      for (std::uint32_t k = 0; k < 28; ++k)
        seen[k] = static_cast<float>((frame * 31 + i * 17 + k * 7) % 101) / 50 - 1;
      const std::uint32_t choice = static_cast<std::uint32_t>(frame % 60);
      imp_demonstration shown = imp_demonstration_init();
      shown.observation = seen;
      shown.observation_count = 28;
      shown.branches = &choice;
      shown.branch_count = 1;
      EXPECT_EQ(api_->agent_demonstrate(agents[i], &shown), IMP_OK) << api_->last_error();
    }
  }

  Measured measure(Way way, std::int32_t rounds) {
    imp_context context = adopt(way);
    std::vector<imp_agent> agents;
    const imp_brain brain = make_brain(context, agents);
    if (way == Way::off) EXPECT_EQ(api_->brain_set_learning(brain, 0), IMP_OK);
    std::vector<double> walls, pictures, submits, learns;
    std::uint64_t seen_frame = 0;
    Measured measured;
    std::uint64_t begun = 0;
    const float seen[28] = {};
    constexpr std::uint64_t kWarm = 40;
    for (std::uint64_t number = 1; number <= kWarm + size_.frames; ++number) {
      const Clock::time_point start = Clock::now();
      ++frame_;
      const VkCommandBuffer commands = host_->begin_frame(frame_);
      imp_frame_info info = imp_frame_info_init();
      info.frame = number;
      info.time_s = static_cast<double>(number) / 60;
      EXPECT_EQ(api_->frame_begin(context, &info), IMP_OK);
      if (number <= 16 && way != Way::off) demonstrate(agents, number);
      for (std::size_t i = 0; i < agents.size(); i += 16)
        EXPECT_EQ(api_->agent_observe(agents[i], seen, 28), IMP_OK);
      const Clock::time_point before = Clock::now();
      EXPECT_EQ(api_->frame_submit(context, UINT32_MAX), IMP_OK) << api_->last_error();
      const double submit_us = std::chrono::duration<double, std::micro>(Clock::now() - before).count();
      EXPECT_EQ(api_->frame_end(context), IMP_OK);
      load_->draw(commands, frame_, rounds);
      host_->end_frame();
      if (number == kWarm) begun = minibatches(brain);
      if (number <= kWarm) continue;
      walls.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      submits.push_back(submit_us);
      imp_context_stats now = imp_context_stats_init();
      EXPECT_EQ(api_->tools->context_get_stats(context, &now), IMP_OK);
      if (now.measured_frame > seen_frame && now.learn_gpu_us > 0) learns.push_back(now.learn_gpu_us);
      seen_frame = now.measured_frame;
      if (frame_ % 8 == 0) {  // the frame that the host's fence has just completed
        pictures.push_back(load_->gpu_us(frame_ - 2));
      }
    }
    host_->finish_frames();
    EXPECT_EQ(api_->context_drain(context, 60'000), IMP_OK) << api_->last_error();
    imp_context_stats stats = imp_context_stats_init();
    EXPECT_EQ(api_->tools->context_get_stats(context, &stats), IMP_OK);
    EXPECT_EQ(stats.frame_allocations + stats.frame_compiles + stats.frame_waits, 0u);
    imp_brain_stats of_brain = imp_brain_stats_init();
    EXPECT_EQ(api_->tools->brain_get_stats(brain, &of_brain), IMP_OK);
    measured.wall_median_us = quantile(walls, 0.5);
    measured.wall_p99_us = quantile(walls, 0.99);
    measured.picture_median_us = quantile(pictures, 0.5);
    measured.submit_median_us = quantile(submits, 0.5);
    measured.learn_us = quantile(learns, 0.5);
    measured.minibatches =
        static_cast<double>(of_brain.minibatches - begun) / static_cast<double>(size_.frames);
    measured.late = of_brain.late_actions;
    EXPECT_EQ(measured.minibatches > 0, way != Way::off);
    EXPECT_EQ(api_->context_destroy(context), IMP_OK) << api_->last_error();
    return measured;
  }

  std::uint64_t minibatches(imp_brain brain) {
    imp_brain_stats stats = imp_brain_stats_init();
    EXPECT_EQ(api_->tools->brain_get_stats(brain, &stats), IMP_OK);
    return stats.minibatches;
  }

  const imp_api* api_ = table();
  std::unique_ptr<PlainHost> host_;
  std::unique_ptr<OverlapLoad> load_;
  Size size_{};
  std::uint64_t frame_ = 0;
};

TEST_F(Overlap, FrameTimesWithAndWithoutLearning) {
  std::printf("%10s  %-13s %12s %10s %12s %11s %10s %17s %6s\n", "picture us", "learning", "frame us", "p99",
              "picture us", "submit us", "learn us", "minibatches/frame", "late");
  for (const double target_us : {100.0, 500.0, 2000.0, 8000.0}) {
    const std::int32_t rounds = rounds_for(target_us);
    for (const Way way : {Way::off, Way::shared, Way::exclusive}) {
      if (way == Way::exclusive && !host_->second_queue()) {
        std::printf("%10.0f  %-13s this device has one queue\n", target_us,
                    kWays[static_cast<std::size_t>(way)]);
        continue;
      }
      const Measured m = measure(way, rounds);
      std::printf("%10.0f  %-13s %12.1f %10.1f %12.1f %11.1f %10.1f %17.2f %6llu\n", target_us,
                  kWays[static_cast<std::size_t>(way)], m.wall_median_us, m.wall_p99_us, m.picture_median_us,
                  m.submit_median_us, m.learn_us, m.minibatches, static_cast<unsigned long long>(m.late));
    }
  }
}

}  // namespace
}  // namespace imprint::bridge

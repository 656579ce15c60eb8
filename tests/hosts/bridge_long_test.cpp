// An hour of play: 216,000 frames at 60 per second of game time, run as fast as possible. A pet decides, is
// praised and scolded, learns, is saved, snapshotted and restored, and the host resizes its window. At the
// end the process, Imprint's memory in use and its reserved memory are as large as at the start.
//
// IMPRINT_LONG_FRAMES plays another number of frames; IMPRINT_LONG_SECONDS plays that long on the wall clock
// instead; IMPRINT_LONG_VALIDATION=1 plays under validation. Prints what was played.

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"
#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kHour = 216'000;
constexpr std::uint64_t kAsk = 60, kAnswer = 30, kResize = 1'777, kEpisode = 3'600, kKeep = 18'000;  // frames
constexpr std::uint32_t kWanted = 3;
constexpr std::int64_t kSlackBytes = 4 << 20;  // of the process: allocators and the driver keep this for
                                               // themselves, for any number of frames

bool validates() { return std::getenv("IMPRINT_LONG_VALIDATION") != nullptr; }

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

struct Memory {
  std::int64_t process = 0;
  imp_context_stats ours{};
};

class LongPlay : public testing::Test {
 protected:
  void open() {
    ASSERT_TRUE(host_.ok());
    const vk::DeviceDescription device = host_.describe();
    const imp_vk_device_info info = locked_info(host_, device);
    imp_limits limits = imp_limits_init();
    limits.host_copy_period_frames = 600;
    imp_host lent = imp_host_init();
    lent.user = &log_;
    lent.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<std::string*>(user)->append(text).append("\n");
    };
    auto context = game::Context::create(game::Library(imp_get_api), info, lent, limits);
    ASSERT_TRUE(context) << context.outcome.message();
    context_ = std::move(*context);
    game::BrainDesc desc;  // the pet's of samples/pet
    desc.observation_count = 28;
    desc.goal_count = 6;
    desc.branch_sizes = {10};
    desc.learner = game::FeedbackOptions();
    auto brain = context_.create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    brain_ = std::move(*brain);
    auto agent = brain_.create_agent();
    ASSERT_WORKS(agent.outcome);
    agent_ = std::move(*agent);
    ASSERT_WORKS(context_.warmup());
  }

  void frame(std::uint64_t number) {
    const double time_s = static_cast<double>(number) / 60;
    (void)host_.begin_frame(number);
    ASSERT_WORKS(context_.frame_begin(number, time_s, host_.safe_frame()));
    if (number % kAsk == 1) {
      seen_[number / kAsk % seen_.size()] = static_cast<float>(number % 7) / 7;
      ASSERT_WORKS(agent_.set_goal(static_cast<std::uint32_t>(number / kAsk % 6)));
      ASSERT_WORKS(agent_.observe(seen_));
    }
    if (number % kAsk == kAnswer) {
      const auto act = agent_.act();
      ASSERT_WORKS(act.outcome);
      const bool right = act.value.branches[0] == kWanted;
      ++asked_, right_ += right;
      ASSERT_WORKS(agent_.feedback(right ? 1.0f : -1.0f, time_s, game::Credit::current));
    }
    if (number % kEpisode == kAnswer + 1) ASSERT_WORKS(agent_.end_episode(game::EpisodeEnd::truncated));
    if (number % kKeep == 100) ASSERT_WORKS(brain_.save(path_.c_str()));
    if (number % kKeep == 200) {
      auto snapshot = brain_.snapshot();
      ASSERT_WORKS(snapshot.outcome);
      snapshot_ = *snapshot;
    }
    if (number % kKeep == 400) ASSERT_WORKS(brain_.restore(snapshot_));
    ASSERT_WORKS(context_.submit());
    ASSERT_WORKS(context_.frame_end());
    host_.end_frame();
    if (number % kResize == 0) {
      ASSERT_WORKS(context_.quiesce(60'000));
      host_.wait_idle();
      ASSERT_WORKS(context_.resume());
    }
  }

  Memory memory() {
    const game::Outcome drained = context_.drain(60'000);
    EXPECT_TRUE(drained.ok()) << drained.message();
    return {resident_bytes(), context_.stats().value};
  }

  void report(const char* when, std::uint64_t frames, Clock::time_point start, const Memory& memory) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double mib = 1.0 / (1 << 20);
    std::printf(
        "%s: %llu frames in %.0f s; process %.1f MiB, in use %.3f MiB, reserved %.1f MiB in %u blocks; %llu "
        "minibatches, %u of %u right\n",
        when, static_cast<unsigned long long>(frames), seconds, static_cast<double>(memory.process) * mib,
        static_cast<double>(memory.ours.bytes_in_use) * mib,
        static_cast<double>(memory.ours.bytes_reserved) * mib, memory.ours.blocks,
        static_cast<unsigned long long>(brain_.stats()->minibatches), right_, asked_);
    std::fflush(stdout);
    right_ = asked_ = 0;
  }

  void TearDown() override { (void)std::filesystem::remove(path_); }

  PlainHost host_{{"", VK_API_VERSION_1_3, true, validates()}};
  std::string log_;
  game::Context context_;
  game::Brain brain_;
  game::Agent agent_;
  std::array<float, 28> seen_{};
  std::uint64_t snapshot_ = 0;
  std::uint32_t right_ = 0, asked_ = 0;
  const std::string path_ = testing::TempDir() + "imprint-long-" + std::to_string(::getpid()) + ".brain";
};

TEST_F(LongPlay, AnHourLeavesMemoryAsItWas) {
  const std::uint64_t frames = number_of("IMPRINT_LONG_FRAMES", kHour);
  const double seconds = static_cast<double>(number_of("IMPRINT_LONG_SECONDS", 0));
  // Everything rare happens once first.
  const std::uint64_t settled =
      seconds > 0 ? kKeep + 1'000 : std::min<std::uint64_t>(frames / 10, kKeep + 1'000);
  ASSERT_NO_FATAL_FAILURE(open());
  const Clock::time_point start = Clock::now();
  Memory first, last;
  std::uint64_t number = 0;
  const auto played = [&] {  // of 1
    return seconds > 0 ? std::chrono::duration<double>(Clock::now() - start).count() / seconds
                       : static_cast<double>(number) / static_cast<double>(frames);
  };
  for (int tenth = 1; played() < 1;) {
    ASSERT_NO_FATAL_FAILURE(frame(++number)) << "frame " << number;
    if (number == settled) report("settled", number, start, first = memory());
    if (played() * 10 < tenth || played() >= 1) continue;
    if (number > settled) report("on the way", number, start, memory());
    ++tenth;
  }
  report("at the end", number, start, last = memory());
  ASSERT_GT(number, settled) << "too short to tell";
  EXPECT_LE(last.process, first.process + kSlackBytes);
  EXPECT_EQ(last.ours.bytes_in_use, first.ours.bytes_in_use);
  EXPECT_EQ(last.ours.bytes_reserved, first.ours.bytes_reserved);
  EXPECT_EQ(last.ours.blocks, first.ours.blocks);
  EXPECT_EQ(last.ours.compiles, first.ours.compiles);
  EXPECT_EQ(last.ours.allocations, first.ours.allocations);
  EXPECT_EQ(last.ours.frame_compiles + last.ours.frame_allocations + last.ours.frame_waits, 0u);
  EXPECT_EQ(log_, "");
  const imp_brain_stats stats = brain_.stats().value;
  EXPECT_EQ(stats.late_actions, 0u);
  EXPECT_EQ(stats.stopped_brains, 0u);
  EXPECT_GT(stats.minibatches, number / 12);
  EXPECT_TRUE(brain_.save_status().ready());
  agent_.reset();
  brain_.reset();
  ASSERT_WORKS(context_.destroy());
  host_.finish_frames();
}

}  // namespace
}  // namespace imprint::bridge

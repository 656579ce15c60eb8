// T6, T13. One game through the table, recorded into a host's command buffers and submitted to its queue in
// every access mode, with several budgets and frame rates. Losses are equal, and the saved file is
// byte-equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <imprint/imprint.hpp>

#include "compute/base/philox.h"
#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// A frame without a submission cannot be refused.
void submit(Context& context, Side& side, bool refuse) {
  const int before = side.refused;
  side.refuse = refuse;
  const Outcome status = context.submit();
  side.refuse = false;
  if (side.refused > before)
    ASSERT_EQ(status.code(), Code::out_of_host_memory);
  else
    ASSERT_WORKS(status);
}

// Conditions of a game.
struct Course {
  const HostProfile& profile;
  Way way;
  std::uint32_t gpu_us, slice_us;
  std::set<std::uint64_t> refused = {};  // frames in which the host refuses submissions
  std::uint32_t cpu_us = 0;
  std::uint32_t frames = 240;
  std::uint32_t frame_rate = 0;  // of the wall clock; 0 = as fast as it goes
};

// Results of a game.
struct Lived {
  std::string saved;                      // the file
  std::map<std::uint64_t, float> losses;  // of minibatches, by their number
};

struct Pets {
  Context context;
  Brain brain;
  Agent agents[2];
};

void make(const Course& course, const imp_vk_device_info& device, Pets& pets) {
  imp_limits limits = imp_limits_init();
  limits.gpu_us_per_frame = course.gpu_us;
  limits.max_slice_us = course.slice_us;
  limits.cpu_us_per_frame = course.cpu_us;
  Made<Context> context = Context::create(Library(imp_get_api), device, HostDesc(), limits);
  ASSERT_TRUE(context) << context.outcome.message();
  pets.context = std::move(*context);
  const std::uint32_t branch = 5;
  BrainDesc desc;
  desc.observation_count = 6;
  desc.branch_sizes = {branch};
  desc.goal_count = 2;
  desc.brain_count = 2;
  FeedbackOptions options;
  options.learn_period_frames = 5;
  options.replay_capacity = 64;
  desc.learner = options;
  desc.action_latency_frames = 4;  // two frames in flight, one more until the host knows, and one spare
  desc.seed = 11;
  Made<Brain> brain = pets.context.create_brain(desc);
  ASSERT_TRUE(brain) << brain.outcome.message();
  pets.brain = std::move(*brain);
  for (std::uint32_t p = 0; p < 2; ++p) {
    Made<Agent> agent = pets.brain.create_agent(p);
    ASSERT_TRUE(agent);
    pets.agents[p] = std::move(*agent);
  }
  ASSERT_WORKS(pets.context.warmup());
}

// Observation, action, feedback and commands of pet `p`.
void live_pet(Agent& agent, std::uint32_t p, std::uint64_t frame, double time) {
  float seen[6];
  for (std::uint32_t i = 0; i < 6; ++i)
    seen[i] = static_cast<float>(imprint::philox_uniform(static_cast<std::uint32_t>(frame), i, p, 3, 3));
  if (frame % 3 == 0) ASSERT_WORKS(agent.observe(seen));
  const Made<Action> action = agent.act();
  if (frame > 4 && frame % 3 == 1 && action.outcome.ready())
    ASSERT_WORKS(agent.feedback(action.value.branches[0] == frame % 5 ? 1.0f : -1.0f, time, Credit::current));
  if (frame % 40 == 7) ASSERT_WORKS(agent.set_goal(static_cast<std::uint32_t>(frame / 40 % 2)));
}

void live_frame(const Course& course, std::uint64_t frame, Side& side, Pets& pets, const std::string& path) {
  Context& context = pets.context;
  const double time = static_cast<double>(frame) / 60;
  const VkCommandBuffer commands = side.host.begin_frame(frame);
  ASSERT_WORKS(context.frame_begin(frame, time, side.host.safe_frame()));
  for (std::uint32_t p = 0; p < 2; ++p) ASSERT_NO_FATAL_FAILURE(live_pet(pets.agents[p], p, frame, time));
  if (frame == 60) ASSERT_WORKS(pets.brain.snapshot().outcome);
  if (frame == 117) ASSERT_WORKS(pets.brain.restore(1));
  if (frame == course.frames - 40) ASSERT_WORKS(pets.brain.save(path.c_str()));
  if (course.way == Way::record) ASSERT_WORKS(context.estimate().outcome);  // without effect
  if (course.way == Way::record)
    ASSERT_WORKS(context.record(commands).outcome);
  else
    ASSERT_NO_FATAL_FAILURE(submit(context, side, course.refused.contains(frame)));
  ASSERT_WORKS(context.frame_end());
  side.host.end_frame();
  // The host's fences do not pace an exclusive queue, and late answers would change the game.
  if (course.way == Way::exclusive) {
    ASSERT_WORKS(context.quiesce(60'000));
    ASSERT_WORKS(context.resume());
  }
}

void await_save(const Brain& brain) {
  Outcome status = brain.save_status();
  for (int i = 0; i < 2000 && status.code() == Code::not_ready; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    status = brain.save_status();
  }
  ASSERT_TRUE(status.ready()) << status.message();
}

void expect_counts(const Course& course, const Side& side, Pets& pets) {
  const Made<imp_brain_stats> stats = pets.brain.stats();
  EXPECT_EQ(stats.value.late_actions, 0u);
  EXPECT_GT(stats.value.minibatches, course.frames / 8);
  // For the others the amount of learning per frame depends on the budget and the device.
  EXPECT_GE(side.refused,
            std::ranges::count_if(course.refused, [](std::uint64_t frame) { return frame % 3 == 0; }));
  if (course.way == Way::submit) EXPECT_EQ(side.fences > 0, !course.profile.everything);
  if (course.way == Way::submit_without_fence) EXPECT_EQ(side.fences, 0);
  const Made<imp_context_stats> all = pets.context.stats();
  EXPECT_EQ(all.value.frame_compiles, 0u);
  EXPECT_EQ(all.value.frame_allocations, 0u);
  EXPECT_EQ(all.value.frame_waits, 0u);
  // No submission is as short as a microsecond, and no frame is as long as the largest limit.
  EXPECT_EQ(all.value.over_cpu_frames > 0, course.cpu_us == 1);
  EXPECT_EQ(all.value.cpu_deferred_frames > 0, course.cpu_us == 1);
}

// The life of two pets, saved 40 frames before its end.
void live(const Course& course, Lived& outcome) {
  HostProfile wanted = course.profile;
  wanted.second_queue = course.way == Way::exclusive;
  PlainHost host(wanted);
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  {
    Pets pets;
    ASSERT_NO_FATAL_FAILURE(make(course, info_of(device, side, course.way), pets));
    const std::string path = ::testing::TempDir() + "imprint-modes.brain";
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t frame = 1; frame <= course.frames; ++frame) {
      if (course.frame_rate > 0)
        std::this_thread::sleep_until(start +
                                      std::chrono::microseconds(1'000'000 * frame / course.frame_rate));
      ASSERT_NO_FATAL_FAILURE(live_frame(course, frame, side, pets, path));
      const imp_brain_stats now = pets.brain.stats().value;
      if (now.minibatches > 0) outcome.losses[now.minibatches] = now.last_loss;
    }
    host.finish_frames();
    ASSERT_WORKS(pets.context.frame_begin(course.frames + 1, 10.0, host.safe_frame()));
    ASSERT_WORKS(pets.context.frame_end());
    ASSERT_NO_FATAL_FAILURE(await_save(pets.brain));
    outcome.saved = contents(path);
    expect_counts(course, side, pets);
    ASSERT_WORKS(pets.context.destroy());
    for (Agent& agent : pets.agents) agent.release();
    pets.brain.release();
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

const HostProfile kBare{"bare", VK_API_VERSION_1_1, false}, kRich{"rich", VK_API_VERSION_1_3, true};
// The first asking frame, those around a snapshot, a restore and the save, and some between.
const std::set<std::uint64_t> kRefused = {3, 60, 61, 90, 117, 120, 134, 160, 199, 200, 201};
const Course kFirst{kRich, Way::lock, 500, 1000};

void expect_one_file(std::span<const Course> courses) {
  std::string first;
  for (const Course& one : courses) {
    Lived outcome;
    ASSERT_NO_FATAL_FAILURE(live(one, outcome));
    ASSERT_GT(outcome.saved.size(), 1000u);
    if (first.empty()) first = outcome.saved;
    EXPECT_TRUE(outcome.saved == first)
        << one.profile.name << ", way " << static_cast<int>(one.way) << ", budget " << one.gpu_us
        << " us, slices of " << one.slice_us << " us, " << one.refused.size() << " frames refused, "
        << one.cpu_us << " us of the thread";
  }
}

TEST(T6T13Modes, OneLifeIsOneFileHoweverItReachesTheQueue) {
  const Course courses[] = {kFirst,
                            {kRich, Way::submit, 100, 100},
                            {kRich, Way::single_thread, 1000000, 0},
                            {kBare, Way::record, 1, 0},
                            {kRich, Way::run_on_queue, 500, 1000},
                            {kRich, Way::internally_synchronized, 500, 0},
                            {kBare, Way::submit_without_fence, 100, 0, kRefused},
                            {kBare, Way::exclusive, 500, 1000},
                            {kRich, Way::lock, 1000000, 1000, {}, 1}};
  expect_one_file(courses);
}

TEST(T6T13Modes, OneLifeIsOneFileInFurtherWays) {
  const Course courses[] = {kFirst,
                            {kRich, Way::record, 500, 0},
                            {kBare, Way::lock, 10000, 100},
                            {kBare, Way::run_on_queue, 100, 100},
                            {kRich, Way::submit_without_fence, 500, 1000},
                            {kBare, Way::submit_without_fence, 500, 1000},
                            {kRich, Way::record, 1000000, 0},
                            {kRich, Way::submit, 500, 1000, kRefused},
                            {kBare, Way::submit, 1, 0, kRefused},
                            {kRich, Way::exclusive, 500, 1000},
                            {kRich, Way::exclusive, 1000000, 100},
                            {kBare, Way::record, 1000000, 0, {}, 1},
                            {kRich, Way::lock, 500, 1000, {}, UINT32_MAX}};
  expect_one_file(courses);
}

// At frame rates of real games. Work and answers depend on frame numbers, not on time.
TEST(T13FrameRates, LossesAreTheSameAtEveryPaceAndSlice) {
  const HostProfile rich{"rich", VK_API_VERSION_1_3, true};
  struct Budget {
    std::uint32_t gpu_us, slice_us;
  };
  Lived first;
  for (const Way way : {Way::record, Way::lock, Way::exclusive}) {
    for (const Budget budget : {Budget{100, 100}, Budget{1000, 1000}, Budget{1'000'000, 0}}) {
      for (const std::uint32_t frame_rate : {30u, 60u, 144u}) {
        SCOPED_TRACE("way " + std::to_string(static_cast<int>(way)) + ", slices of " +
                     std::to_string(budget.slice_us) + " us, " + std::to_string(frame_rate) +
                     " frames a second");
        Lived outcome;
        ASSERT_NO_FATAL_FAILURE(
            live({rich, way, budget.gpu_us, budget.slice_us, {}, 0, 90, frame_rate}, outcome));
        if (first.saved.empty()) first = outcome;
        EXPECT_TRUE(outcome.saved == first.saved) << "a different brain";
        EXPECT_GT(outcome.losses.size(), 10u);
        EXPECT_EQ(outcome.losses, first.losses);
      }
    }
  }
}

}  // namespace

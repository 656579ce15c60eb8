// T6, T13. One life through the table, recorded into a host's command buffers and submitted to its queue in
// every way, under several budgets and at several frame rates: the same losses, and the same file to the last
// byte.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <imprint/imprint.hpp>

#include "compute/base/philox.h"
#include "tests/hosts/assert_works.h"
#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/plain_host.h"

namespace {

using namespace imprint::game;
using imprint::bridge::HostProfile;
using imprint::bridge::PlainHost;

enum class Way {
  record,
  lock,
  submit,
  submit_without_fence,
  run_on_queue,
  single_thread,
  internally_synchronized,
  exclusive
};

// The host's side of the queue.
struct Side {
  PlainHost& host;
  bool refuse = false;  // submissions
  int refused = 0;
  int fences = 0;  // given to the host's submit
  std::vector<std::string> log;
};

imp_queue_access access_of(Way way) {
  switch (way) {
    case Way::record:
      return IMP_QUEUE_RECORD_ONLY;
    case Way::lock:
      return IMP_QUEUE_LOCK;
    case Way::submit:
    case Way::submit_without_fence:
      return IMP_QUEUE_SUBMIT_CALLBACK;
    case Way::run_on_queue:
      return IMP_QUEUE_RUN_ON_QUEUE;
    case Way::single_thread:
      return IMP_QUEUE_SINGLE_THREAD;
    case Way::internally_synchronized:  // which with a host on one thread any queue is
      return IMP_QUEUE_INTERNALLY_SYNCHRONIZED;
    case Way::exclusive:
      return IMP_QUEUE_EXCLUSIVE;
  }
  return IMP_QUEUE_RECORD_ONLY;
}

imp_vk_device_info info_of(const imprint::vk::DeviceDescription& device, Side& side, Way way) {
  PlainHost& host = side.host;
  imp_vk_device_info info = imprint::bridge::device_info(host, device, access_of(way));
  if (way == Way::record || way == Way::single_thread || way == Way::internally_synchronized) return info;
  info.queue.user = &side;
  if (way == Way::exclusive && host.second_queue()) {
    info.queue.queue = host.second_queue();
    info.queue.family = host.second_family();
  } else if (way == Way::lock || way == Way::exclusive) {
    info.queue.lock = [](void* user, VkQueue) { static_cast<Side*>(user)->host.mutex().lock(); };
    info.queue.unlock = [](void* user, VkQueue) { static_cast<Side*>(user)->host.mutex().unlock(); };
  } else if (way == Way::run_on_queue) {  // the host's submission thread
    info.queue.run_on_queue = [](void* user, void (*work)(void* data, VkQueue queue), void* data) {
      PlainHost& self = static_cast<Side*>(user)->host;
      std::thread([&] {
        const std::lock_guard lock(self.mutex());
        work(data, self.queue());
      }).join();
    };
  } else {
    info.queue.submit_without_fence = way == Way::submit_without_fence;
    info.queue.submit = [](void* user, VkQueue, std::uint32_t count, const void* submits,
                           std::uint64_t number) -> std::int32_t {
      VkFence fence = VK_NULL_HANDLE;
      std::memcpy(&fence, &number, sizeof fence);
      auto& self = *static_cast<Side*>(user);
      self.fences += fence != VK_NULL_HANDLE;
      if (!self.refuse) return self.host.submit(count, static_cast<const VkSubmitInfo*>(submits), fence);
      ++self.refused;
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    };
  }
  return info;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A frame with nothing to submit has nothing that could be refused.
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

// How a life is lived.
struct Course {
  const HostProfile& profile;
  Way way;
  std::uint32_t gpu_us, slice_us;
  std::set<std::uint64_t> refused = {};  // frames whose submissions the host refuses
  std::uint32_t cpu_us = 0;
  std::uint32_t frames = 240;
  std::uint32_t frame_rate = 0;  // of the wall clock; 0 = as fast as it goes
};

// What came of it.
struct Lived {
  std::string saved;                      // the file
  std::map<std::uint64_t, float> losses;  // of minibatches, by their number
};

// The life of two pets, saved 40 frames before its end.
void live(const Course& course, Lived& outcome) {
  const auto& [profile, way, gpu_us, slice_us, refused, cpu_us, frames, frame_rate] = course;
  HostProfile wanted = profile;
  wanted.second_queue = way == Way::exclusive;
  PlainHost host(wanted);
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  {
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = gpu_us;
    limits.max_slice_us = slice_us;
    limits.cpu_us_per_frame = cpu_us;
    Made<Context> context =
        Context::create(Library(imp_get_api), info_of(device, side, way), HostDesc(), limits);
    ASSERT_TRUE(context) << context.outcome.message();
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
    desc.action_latency_frames = 4;  // two frames in flight, one more until the host knows, and one to spare
    desc.seed = 11;
    Made<Brain> brain = context->create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    Agent agents[2];
    for (std::uint32_t p = 0; p < 2; ++p) {
      Made<Agent> agent = brain->create_agent(p);
      ASSERT_TRUE(agent);
      agents[p] = std::move(*agent);
    }
    ASSERT_WORKS(context->warmup());
    const std::string path = ::testing::TempDir() + "imprint-modes.brain";
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t frame = 1; frame <= frames; ++frame) {
      if (frame_rate > 0)
        std::this_thread::sleep_until(start + std::chrono::microseconds(1'000'000 * frame / frame_rate));
      const double time = static_cast<double>(frame) / 60;
      const VkCommandBuffer commands = host.begin_frame(frame);
      ASSERT_WORKS(context->frame_begin(frame, time, host.safe_frame()));
      for (std::uint32_t p = 0; p < 2; ++p) {
        float seen[6];
        for (std::uint32_t i = 0; i < 6; ++i)
          seen[i] =
              static_cast<float>(imprint::philox_uniform(static_cast<std::uint32_t>(frame), i, p, 3, 3));
        if (frame % 3 == 0) ASSERT_WORKS(agents[p].observe(seen));
        const Made<Action> action = agents[p].act();
        if (frame > 4 && frame % 3 == 1 && action.outcome.ready())
          ASSERT_WORKS(agents[p].feedback(action.value.branches[0] == frame % 5 ? 1.0f : -1.0f, time,
                                          Credit::current));
        if (frame % 40 == 7) ASSERT_WORKS(agents[p].set_goal(static_cast<std::uint32_t>(frame / 40 % 2)));
      }
      if (frame == 60) ASSERT_WORKS(brain->snapshot().outcome);
      if (frame == 117) ASSERT_WORKS(brain->restore(1));
      if (frame == frames - 40) ASSERT_WORKS(brain->save(path.c_str()));
      if (way == Way::record) ASSERT_WORKS(context->estimate().outcome);  // which changes nothing
      if (way == Way::record)
        ASSERT_WORKS(context->record(commands).outcome);
      else
        ASSERT_NO_FATAL_FAILURE(submit(*context, side, refused.contains(frame)));
      ASSERT_WORKS(context->frame_end());
      host.end_frame();
      // The host's fences do not pace a queue of ours, and a late answer would be another life.
      if (way == Way::exclusive) {
        ASSERT_WORKS(context->quiesce(60'000));
        ASSERT_WORKS(context->resume());
      }
      const imp_brain_stats now = brain->stats().value;
      if (now.minibatches > 0) outcome.losses[now.minibatches] = now.last_loss;
    }
    host.finish_frames();
    ASSERT_WORKS(context->frame_begin(frames + 1, 10.0, host.safe_frame()));
    ASSERT_WORKS(context->frame_end());
    Outcome status = brain->save_status();
    for (int i = 0; i < 2000 && status.code() == Code::not_ready; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      status = brain->save_status();
    }
    ASSERT_TRUE(status.ready()) << status.message();
    outcome.saved = contents(path);
    const Made<imp_brain_stats> stats = brain->stats();
    EXPECT_EQ(stats.value.late_actions, 0u);
    EXPECT_GT(stats.value.minibatches, frames / 8);
    // Of the others, how much learning there is to submit is the budget's and the device's to say.
    EXPECT_GE(side.refused,
              std::ranges::count_if(refused, [](std::uint64_t frame) { return frame % 3 == 0; }));
    if (way == Way::submit) EXPECT_EQ(side.fences > 0, !profile.everything);
    if (way == Way::submit_without_fence) EXPECT_EQ(side.fences, 0);
    const Made<imp_context_stats> all = context->stats();
    EXPECT_EQ(all.value.frame_compiles, 0u);
    EXPECT_EQ(all.value.frame_allocations, 0u);
    EXPECT_EQ(all.value.frame_waits, 0u);
    // No submission takes as little as a microsecond, and no frame is as long as the longest limit.
    EXPECT_EQ(all.value.over_cpu_frames > 0, cpu_us == 1);
    EXPECT_EQ(all.value.cpu_deferred_frames > 0, cpu_us == 1);
    ASSERT_WORKS(context->destroy());
    for (Agent& agent : agents) agent.release();
    brain->release();
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

TEST(T6T13Modes, OneLifeIsOneFileHoweverItReachesTheQueue) {
  const HostProfile bare{"bare", VK_API_VERSION_1_1, false}, rich{"rich", VK_API_VERSION_1_3, true};
  // The first one that asks, those around a snapshot, a restore and the save, and now and then one between.
  const std::set<std::uint64_t> refused = {3, 60, 61, 90, 117, 120, 134, 160, 199, 200, 201};
  const Course courses[] = {{rich, Way::lock, 500, 1000},
                            {rich, Way::record, 500, 0},
                            {rich, Way::submit, 100, 100},
                            {rich, Way::single_thread, 1000000, 0},
                            {bare, Way::record, 1, 0},
                            {bare, Way::lock, 10000, 100},
                            {rich, Way::run_on_queue, 500, 1000},
                            {bare, Way::run_on_queue, 100, 100},
                            {rich, Way::internally_synchronized, 500, 0},
                            {rich, Way::submit_without_fence, 500, 1000},
                            {bare, Way::submit_without_fence, 500, 1000},
                            {bare, Way::submit_without_fence, 100, 0, refused},
                            {rich, Way::record, 1000000, 0},
                            {rich, Way::submit, 500, 1000, refused},
                            {bare, Way::submit, 1, 0, refused},
                            {rich, Way::exclusive, 500, 1000},
                            {bare, Way::exclusive, 500, 1000},
                            {rich, Way::exclusive, 1000000, 100},
                            {rich, Way::lock, 1000000, 1000, {}, 1},
                            {bare, Way::record, 1000000, 0, {}, 1},
                            {rich, Way::lock, 500, 1000, {}, UINT32_MAX}};
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

// At the paces of real games: what is done in a frame, and when it is known, depends on frames and not on
// time.
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
        EXPECT_TRUE(outcome.saved == first.saved) << "another brain";
        EXPECT_GT(outcome.losses.size(), 10u);
        EXPECT_EQ(outcome.losses, first.losses);
      }
    }
  }
}

TEST(T6Modes, AThreadThatSubmitsIsOneOfOurs) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true, true, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  imp_limits limits = imp_limits_init();
  limits.worker_threads = 0;
  const Made<Context> context =
      Context::create(Library(imp_get_api), info_of(device, side, Way::exclusive), HostDesc(), limits);
  EXPECT_EQ(context.outcome.code(), Code::invalid_argument);
  EXPECT_NE(std::string(context.outcome.message()).find("limits.worker_threads: found 0"), std::string::npos)
      << context.outcome.message();
}

// A brain may go while its save waits for a submission that the host refused.
TEST(T6Modes, ARefusedSaveGoesWithItsBrain) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  imp_host lent = imp_host_init();
  lent.user = &side;
  lent.log = [](void* user, imp_log_level level, const char* text) {
    if (level >= IMP_LOG_WARNING) static_cast<Side*>(user)->log.emplace_back(text);
  };
  {
    Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::submit), lent);
    ASSERT_TRUE(context) << context.outcome.message();
    const std::uint32_t branch = 3;
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {branch};
    Made<Brain> brain = context->create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    ASSERT_WORKS(context->warmup());
    const std::string path = ::testing::TempDir() + "imprint-refused.brain";
    (void)std::remove(path.c_str());
    ASSERT_WORKS(context->frame_begin(1, 0));
    ASSERT_WORKS(brain->save(path.c_str()));
    side.refuse = true;
    EXPECT_EQ(context->submit().code(), Code::out_of_host_memory);
    side.refuse = false;
    ASSERT_WORKS(context->frame_end());
    EXPECT_EQ(brain->save_status().code(), Code::not_ready);
    brain->reset();
    ASSERT_EQ(side.log.size(), 1u);
    EXPECT_NE(side.log[0].find("destroyed before"), std::string::npos) << side.log[0];
    for (std::uint64_t frame = 2; frame <= 4; ++frame) {
      ASSERT_WORKS(context->frame_begin(frame, 0));
      ASSERT_WORKS(context->submit());
      ASSERT_WORKS(context->frame_end());
    }
    ASSERT_WORKS(context->drain(10000));
    EXPECT_TRUE(contents(path).empty());
    ASSERT_WORKS(context->destroy());
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

// Recorded work that may still run keeps the context alive, and says what it waits for.
TEST(T8Modes, DestroyingTooEarlyIsRefused) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::record));
  ASSERT_TRUE(context) << context.outcome.message();
  for (std::uint64_t frame = 1; frame <= 3; ++frame) {
    const VkCommandBuffer commands = host.begin_frame(frame);
    ASSERT_WORKS(context->frame_begin(frame, 0, host.safe_frame()));
    ASSERT_WORKS(context->record(commands).outcome);
    ASSERT_WORKS(context->frame_end());
    host.end_frame();
  }
  const Outcome refused = context->destroy();
  EXPECT_EQ(refused.code(), Code::wrong_state);
  EXPECT_NE(std::string(refused.message()).find("safe_frame"), std::string::npos);
  EXPECT_EQ(context->drain(10).code(), Code::unsupported);
  host.finish_frames();
  const Outcome too_much = context->frame_begin(4, 0, 4);  // of a frame that is yet to be recorded
  EXPECT_EQ(too_much.code(), Code::invalid_argument);
  EXPECT_NE(std::string(too_much.message()).find("safe_frame is 4 in frame 4"), std::string::npos)
      << too_much.message();
  ASSERT_WORKS(context->frame_begin(4, 0, 3));
  ASSERT_WORKS(context->frame_end());
  EXPECT_TRUE(context->destroy());
}

// A player closes the window: the game calls exit in the middle of a frame, destroys nothing, and what is
// loaded goes as it may.
[[noreturn]] void exit_in_a_frame(Way way) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true, false, way == Way::exclusive});
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, way));
  const std::uint32_t branch = 3;
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {branch};
  FeedbackOptions options;
  options.learn_period_frames = 2;
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  Made<Agent> agent = brain->create_agent();
  bool good = context->warmup().ok();
  const float seen[] = {1, 2};
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen;
  shown.observation_count = 2;
  const std::string path = ::testing::TempDir() + "imprint-exit.brain";
  for (std::uint64_t frame = 1; frame <= 20; ++frame) {
    const VkCommandBuffer commands = host.begin_frame(frame);
    good = good && context->frame_begin(frame, 0, host.safe_frame()) && agent->observe(seen) &&
           agent->demonstrate(shown);
    if (frame == 20) good = good && brain->save(path.c_str());
    good = good && (way == Way::record ? context->record(commands).outcome : context->submit());
    if (frame == 20) break;
    good = good && context->frame_end();
    host.end_frame();
  }
  std::exit(good ? 0 : 1);
}

TEST(T8Modes, AHostMayExitInTheMiddle) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Way way : {Way::record, Way::lock, Way::exclusive})
    EXPECT_EXIT(exit_in_a_frame(way), ::testing::ExitedWithCode(0), "");
}

// What goes with its context is counted and named, for a game that believes it has destroyed everything; and
// nothing is said when it has.
TEST(T8Modes, WhatIsLeftIsCountedAndNamed) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  const imprint::vk::DeviceDescription device = host.describe();
  for (const bool leaves : {true, false}) {
    Side side{host};
    imp_host lent = imp_host_init();
    lent.user = &side;
    lent.log = [](void* user, imp_log_level, const char* text) {
      static_cast<Side*>(user)->log.emplace_back(text);
    };
    Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::lock), lent);
    ASSERT_TRUE(context) << context.outcome.message();
    const std::uint32_t branch = 3;
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {branch};
    desc.agents_per_brain = 2;
    Made<Brain> brains[2];
    for (std::size_t i = 0; i < 2; ++i) {
      desc.name = i == 0 ? "cat" : "dog";
      brains[i] = context->create_brain(desc);
      ASSERT_TRUE(brains[i]) << brains[i].outcome.message();
    }
    Made<Agent> agents[] = {brains[0]->create_agent(), brains[0]->create_agent(), brains[1]->create_agent()};
    Made<Tensor> tensor =
        context->create_tensor(TensorDesc{.name = "view", .shape = {4}}, imp_vk_buffer_init());
    ASSERT_TRUE(tensor) << tensor.outcome.message();
    side.log.clear();
    if (leaves) {
      for (Made<Agent>& agent : agents) agent->release();
      for (Made<Brain>& brain : brains) brain->release();
      tensor->release();
    } else {
      for (Made<Agent>& agent : agents) agent->reset();
      for (Made<Brain>& brain : brains) brain->reset();
      tensor->reset();
    }
    ASSERT_WORKS(context->destroy());
    std::string said;
    for (const std::string& line : side.log)
      if (line.find("destroyed with it") != line.npos) said += line;
    EXPECT_EQ(
        said,
        leaves
            ? "context_destroy: destroyed with it: 2 brains ('cat', 'dog'), 1 tensors ('view') and 3 agents"
            : "");
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

// What a host knows of its command buffer and Vulkan does not tell: an error, and a command buffer that
// nothing was recorded into.
TEST(T8Modes, ACommandBufferThatCannotBeIsRefused) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::record));
  ASSERT_TRUE(context) << context.outcome.message();
  const imp_api* api = context->api();
  const VkCommandBuffer commands = host.begin_frame(1);
  ASSERT_WORKS(context->frame_begin(1, 0));
  imp_record_info info = imp_record_info_init();
  info.command_buffer = commands;
  const std::pair<std::uint32_t, imp_result> refusals[] = {
      {IMP_RECORD_IN_RENDER_PASS, IMP_ERROR_INVALID_ARGUMENT}, {IMP_RECORD_SECONDARY, IMP_ERROR_UNSUPPORTED},
      {IMP_RECORD_PROTECTED, IMP_ERROR_UNSUPPORTED},           {IMP_RECORD_REUSED, IMP_ERROR_UNSUPPORTED},
      {IMP_RECORD_OTHER_FAMILY, IMP_ERROR_UNSUPPORTED},        {1u << 20, IMP_ERROR_INVALID_ARGUMENT}};
  for (const auto& [state, result] : refusals) {
    info.state = state;
    EXPECT_EQ(api->vulkan->frame_record(context->handle(), &info, nullptr), result) << state;
    EXPECT_NE(std::string(api->last_error()), "") << state;
  }
  info.state = 0;
  EXPECT_EQ(api->vulkan->frame_record(context->handle(), &info, nullptr), IMP_OK) << api->last_error();
  ASSERT_WORKS(context->frame_end());
  host.end_frame();
  host.finish_frames();
  ASSERT_WORKS(context->frame_begin(2, 0, 1));
  ASSERT_WORKS(context->frame_end());
  EXPECT_TRUE(context->destroy());
}

// A queue of the host's waits for what was submitted on ours, by a semaphore and a value.
TEST(T3Modes, OurSemaphoreIsTheHostsToWaitFor) {
  for (const bool rich : {true, false}) {
    PlainHost host({rich ? "rich" : "bare", rich ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, rich});
    ASSERT_TRUE(host.ok());
    Side side{host};
    const imprint::vk::DeviceDescription device = host.describe();
    Made<Context> context = Context::create(
        Library(imp_get_api), info_of(device, side, rich ? Way::exclusive : Way::single_thread));
    ASSERT_TRUE(context) << context.outcome.message();
    if (!rich) {
      EXPECT_EQ(context->semaphore().outcome.code(), Code::unsupported) << "without timeline semaphores";
      continue;
    }
    EXPECT_FALSE(context->semaphore().outcome.ready()) << "nothing was submitted";
    const std::uint32_t branch = 3;
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {branch};
    Made<Brain> brain = context->create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    Made<Agent> agent = brain->create_agent();
    ASSERT_TRUE(agent);
    ASSERT_WORKS(context->warmup());
    std::uint64_t before = 0;
    for (std::uint64_t frame = 1; frame <= 5; ++frame) {
      const float seen[] = {1, 2};
      ASSERT_WORKS(context->frame_begin(frame, 0));
      ASSERT_WORKS(agent->observe(seen));
      ASSERT_WORKS(context->submit());
      ASSERT_WORKS(context->frame_end());
      const Made<imp_vk_semaphore> ours = context->semaphore();
      ASSERT_WORKS(ours.outcome);
      EXPECT_EQ(ours.value.timeline, 1u);
      EXPECT_GT(ours.value.value, before) << "every submission has its own";
      before = ours.value.value;
      VkSemaphore semaphore = VK_NULL_HANDLE;
      std::memcpy(&semaphore, &ours.value.semaphore, sizeof semaphore);
      VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
      wait.semaphoreCount = 1;
      wait.pSemaphores = &semaphore;
      wait.pValues = &ours.value.value;
      ASSERT_EQ(host.vk().vkWaitSemaphores(host.device(), &wait, 60'000'000'000), VK_SUCCESS);
      VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
      values.waitSemaphoreValueCount = 1;
      values.pWaitSemaphoreValues = &ours.value.value;
      const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
      VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
      submit.waitSemaphoreCount = 1;
      submit.pWaitSemaphores = &semaphore;
      submit.pWaitDstStageMask = &stage;
      ASSERT_EQ(host.submit(1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
      EXPECT_TRUE(context->quiesce(0)) << "all of it was complete";
      ASSERT_WORKS(context->resume());
    }
    host.wait_idle();
    EXPECT_TRUE(context->destroy());
    Made<Context> records = Context::create(Library(imp_get_api), info_of(device, side, Way::record));
    ASSERT_TRUE(records) << records.outcome.message();
    EXPECT_EQ(records->semaphore().outcome.code(), Code::unsupported) << "the host's own submission tells";
  }
}

// A host that waits for its own device to be idle, as on a resize, in the middle of our work.
TEST(T7Modes, AQuietContextLeavesTheQueueToTheHost) {
  for (const bool rich : {false, true}) {
    PlainHost host({rich ? "rich" : "bare", rich ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, rich});
    ASSERT_TRUE(host.ok());
    Side side{host};
    const imprint::vk::DeviceDescription device = host.describe();
    Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::lock));
    ASSERT_TRUE(context) << context.outcome.message();
    const imp_api* api = context->api();
    const std::uint32_t branch = 3;
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {branch};
    desc.learner = FeedbackOptions();
    Made<Brain> brain = context->create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    Made<Agent> agent = brain->create_agent();
    ASSERT_TRUE(agent);
    ASSERT_WORKS(context->warmup());
    EXPECT_EQ(api->context_resume(context->handle()), IMP_ERROR_WRONG_STATE);
    const float seen[2] = {1, 2};
    for (std::uint64_t frame = 1; frame <= 40; ++frame) {
      ASSERT_WORKS(context->frame_begin(frame, 0));
      EXPECT_EQ(api->context_quiesce(context->handle(), 1000), IMP_ERROR_WRONG_STATE) << "in an open frame";
      ASSERT_WORKS(agent->observe(seen));
      ASSERT_WORKS(context->submit());
      ASSERT_WORKS(context->frame_end());
      if (frame % 8 != 0) continue;
      ASSERT_EQ(api->context_quiesce(context->handle(), 60000), IMP_OK) << api->last_error();
      host.wait_idle();  // takes no lock of the queue's
      EXPECT_EQ(context->frame_begin(frame + 1, 0).code(), Code::wrong_state);
      EXPECT_NE(std::string(api->last_error()).find("resume"), std::string::npos) << api->last_error();
      EXPECT_EQ(context->drain(1000).code(), Code::wrong_state);
      EXPECT_EQ(brain->hash().outcome.code(), Code::wrong_state);
      ASSERT_EQ(api->context_resume(context->handle()), IMP_OK) << api->last_error();
    }
    ASSERT_WORKS(context->destroy());
    agent->release();
    brain->release();
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }
}

// Without fence and timeline nothing but the host's frames tells what is done; so there is nothing to wait
// for.
TEST(T6Modes, WithoutFenceAndTimelineOnlyFramesTell) {
  PlainHost host({"bare", VK_API_VERSION_1_1, false});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  Made<Context> context =
      Context::create(Library(imp_get_api), info_of(device, side, Way::submit_without_fence));
  ASSERT_TRUE(context) << context.outcome.message();
  const std::uint32_t branch = 3;
  BrainDesc desc;
  desc.observation_count = 2;
  desc.branch_sizes = {branch};
  Made<Brain> brain = context->create_brain(desc);
  ASSERT_TRUE(brain) << brain.outcome.message();
  ASSERT_WORKS(context->warmup());
  (void)host.begin_frame(1);
  ASSERT_WORKS(context->frame_begin(1, 0));
  ASSERT_WORKS(context->submit());
  ASSERT_WORKS(context->frame_end());
  host.end_frame();
  EXPECT_EQ(context->drain(10).code(), Code::unsupported);
  EXPECT_EQ(brain->hash().outcome.code(), Code::unsupported);
  EXPECT_EQ(context->destroy().code(), Code::wrong_state) << "what was submitted may still run";
  host.finish_frames();
  ASSERT_WORKS(context->frame_begin(2, 0, 1));
  ASSERT_WORKS(context->frame_end());
  ASSERT_WORKS(context->destroy());
  brain->release();
}

}  // namespace

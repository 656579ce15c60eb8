// The cost of a frame in the statistics, and structs of other versions, through the table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/assert_works.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

class FrameTest : public ::testing::Test {
 protected:
  void open(std::uint64_t memory_cap = std::uint64_t{1} << 30) {
    const char* name = std::getenv("IMPRINT_TEST_DEVICE");
    imp_standalone_info device = imp_standalone_info_init();
    device.device = name;
    imp_limits limits = imp_limits_init();
    limits.memory_cap_bytes = memory_cap;
    imp_host host = imp_host_init();
    host.user = this;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<FrameTest*>(user)->log.emplace_back(text);
    };
    Made<Context> made = Context::create_standalone(Library(imp_get_api), device, host, limits);
    ASSERT_TRUE(made) << made.outcome.message();
    context = std::move(*made);
  }

  // One brain with this many observations and samples to remember, and one agent.
  void add(std::uint32_t observations, std::uint32_t capacity) {
    const std::uint32_t branch = 3, hidden = 8;
    BrainDesc desc;
    desc.observation_count = observations;
    desc.branch_sizes = {branch};
    desc.hidden_sizes = {hidden};
    FeedbackOptions options;
    options.replay_capacity = capacity;
    desc.learner = options;
    desc.snapshot_count = 0;
    Made<Brain> made = context.create_brain(desc);
    ASSERT_TRUE(made) << made.outcome.message();
    brain = std::move(*made);
    Made<Agent> made_agent = brain.create_agent();
    ASSERT_TRUE(made_agent) << made_agent.outcome.message();
    agent = std::move(*made_agent);
    ASSERT_WORKS(context.warmup());
  }

  void begin() {
    ++frame;
    ASSERT_WORKS(context.frame_begin(frame, static_cast<double>(frame) / 60));
  }
  void end() {
    ASSERT_WORKS(context.submit());
    ASSERT_WORKS(context.frame_end());
  }

  std::vector<std::string> log;
  Context context;
  Brain brain;
  Agent agent;
  std::uint64_t frame = 0;
};

TEST_F(FrameTest, CpuTimeIsTheSumOfItsCalls) {
  open();
  add(4096, 64);
  const std::vector<float> seen(4096, 0.5f);
  begin();
  end();
  const float idle_us = context.stats().value.frame_cpu_us;
  EXPECT_GT(idle_us, 0);

  const Clock::time_point start = Clock::now();
  begin();
  const Clock::time_point observing = Clock::now();
  for (int i = 0; i < 400; ++i) ASSERT_WORKS(agent.observe(seen));
  const double observed_us = us_since(observing);
  EXPECT_EQ(context.stats().value.frame_cpu_us, idle_us) << "of the last closed frame";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the game's own time
  end();
  const double whole_us = us_since(start);
  const float busy_us = context.stats().value.frame_cpu_us;
  EXPECT_GT(busy_us, 0.5 * observed_us);
  EXPECT_LT(busy_us, whole_us - 90'000);

  begin();
  end();
  EXPECT_LT(context.stats().value.frame_cpu_us, busy_us) << "per frame";

  // Counters do not change between frames.
  for (int i = 0; i < 400; ++i) ASSERT_WORKS(agent.set_goal(0));
  begin();
  ASSERT_WORKS(context.frame_end());
  EXPECT_LT(context.stats().value.frame_cpu_us, busy_us);
}

TEST_F(FrameTest, AFrameThatInfersNothingTakesNoTimeForIt) {
  open();
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  if (!name || std::string(name) != "cpu")
    GTEST_SKIP() << "CPU time of the frame; GPU times follow frames later, with the frame's number";
  add(64, 16);
  const std::vector<float> seen(64, 0.5f);
  begin();
  ASSERT_WORKS(agent.observe(seen));
  end();
  const double sum_us = context.stats().value.infer_gpu_sum_us;
  EXPECT_GT(context.stats().value.infer_gpu_us, 0);
  EXPECT_GE(sum_us, context.stats().value.infer_gpu_us);
  begin();
  end();
  EXPECT_EQ(context.stats().value.infer_gpu_us, 0);
  EXPECT_EQ(context.stats().value.infer_gpu_sum_us, sum_us);
}

// 40 MiB: more than a block of the memory pool, so that the test notices an allocation in a frame.
TEST_F(FrameTest, ALargeSaveInAFrameAllocatesNothing) {
  open();
  add(64, 160'000);
  const std::string path = ::testing::TempDir() + "imprint-large.brain";
  const imp_context_stats before = context.stats().value;
  begin();
  ASSERT_WORKS(brain.save(path.c_str()));
  end();
  ASSERT_WORKS(context.drain(60'000));
  EXPECT_EQ(brain.save_status().result(), IMP_OK);
  const imp_context_stats after = context.stats().value;
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.frame_allocations, 0u);
  EXPECT_EQ(after.frame_compiles, 0u);
  EXPECT_EQ(after.frame_waits, 0u);
  EXPECT_GT(std::ifstream(path, std::ios::ate).tellg(), 40'000'000);
  EXPECT_TRUE(log.empty()) << log.front();
  (void)std::remove(path.c_str());
}

// A host whose device cannot serve, on a machine without another. gpu_abi_on_cpu hides the others.
TEST_F(FrameTest, WithoutADeviceTheCpuComputes) {
  imp_vk_device_info device = imp_vk_device_info_init();
  device.get_instance_proc_addr = [](VkInstance, const char*) -> imp_void_function { return nullptr; };
  device.instance = reinterpret_cast<VkInstance>(std::uintptr_t{8});
  device.physical_device = reinterpret_cast<VkPhysicalDevice>(std::uintptr_t{8});
  device.device = reinterpret_cast<VkDevice>(std::uintptr_t{8});
  device.api_version = 1u << 22;  // 1.0
  device.allow_own_device = 1;
  imp_host host = imp_host_init();
  host.user = &log;
  host.log = [](void* user, imp_log_level, const char* text) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  Made<Context> made = Context::create(Library(imp_get_api), device, host);
  ASSERT_TRUE(made) << made.outcome.message();
  context = std::move(*made);
  imp_report report = imp_report_init();
  ASSERT_EQ(Library(imp_get_api).api()->tools->context_get_report(context.handle(), &report), IMP_OK);
  EXPECT_EQ(report.submits, 1u);
  const char* name = std::getenv("IMPRINT_TEST_DEVICE");
  if (!name || std::string(name) != "cpu") return;
  EXPECT_STREQ(report.device, "CPU");
  EXPECT_EQ(report.completion, IMP_COMPLETED_BY_CALLS);
  EXPECT_THAT(log, testing::Contains(HasSubstr("the CPU computes")));
  add(4, 64);
  for (int i = 0; i < 3; ++i) {
    begin();
    end();
  }
}

TEST_F(FrameTest, WithoutRoomALargeSaveIsRefusedInAFrame) {
  if (const char* name = std::getenv("IMPRINT_TEST_DEVICE"); name && std::string(name) == "cpu")
    GTEST_SKIP() << "the cap limits device memory";
  open(std::uint64_t{80} << 20);
  add(64, 160'000);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("between frames only"));
  begin();
  const Outcome in_frame = brain.save("/nowhere");
  EXPECT_EQ(in_frame.code(), Code::wrong_state);
  EXPECT_THAT(in_frame.message(), HasSubstr("save between frames"));
  end();
  EXPECT_EQ(brain.save("/nowhere").code(), Code::out_of_device_memory);
  EXPECT_EQ(brain.save_status().code(), Code::not_found);
  EXPECT_EQ(context.stats().value.frame_allocations, 0u);
  begin();
  end();
}

// Calls marked [any] on another thread, while frames pass, files are written, and brains come and go.
TEST_F(FrameTest, AnyCallsMeetEverything) {
  open();
  add(8, 64);
  const imp_api* api = context.api();
  const imp_context context_handle = context.handle();
  const imp_brain brain_handle = brain.handle();
  std::atomic<bool> stop{false};
  std::uint64_t polls = 0;
  std::thread other([&] {
    for (; !stop; ++polls) {
      imp_context_stats all = imp_context_stats_init();
      imp_brain_stats stats = imp_brain_stats_init();
      imp_brain_info info = imp_brain_info_init();
      EXPECT_EQ(api->tools->context_get_stats(context_handle, &all), IMP_OK);
      EXPECT_EQ(api->tools->brain_get_stats(brain_handle, &stats), IMP_OK);
      EXPECT_EQ(api->brain_get_info(brain_handle, &info), IMP_OK);
      EXPECT_EQ(info.observation_count, 8u);
      EXPECT_EQ(api->tools->brain_get_stats(imp_brain{}, &stats), IMP_ERROR_INVALID_HANDLE);
      std::this_thread::yield();
    }
  });
  const std::string path = ::testing::TempDir() + "imprint-any.brain";
  const std::vector<float> seen(8, 0.5f);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) {
      begin();
      EXPECT_TRUE(agent.act().outcome.ok() || frame < 4);
      EXPECT_TRUE(agent.observe(seen));
      EXPECT_TRUE(agent.reward(0.5f));
      if (i == 7) EXPECT_TRUE(brain.save(path.c_str()));
      end();
    }
    Made<Brain> guest = context.create_brain([] {
      static const std::uint32_t branch = 2;
      BrainDesc desc;
      desc.observation_count = 3;
      desc.branch_sizes = {branch};
      desc.learner = CloningOptions();
      return desc;
    }());
    EXPECT_TRUE(guest) << guest.outcome.message();
    EXPECT_TRUE(guest->create_agent().outcome.ok());
    EXPECT_TRUE(context.warmup());
    begin();
    end();
    guest->reset();
    EXPECT_TRUE(context.drain(60'000));
    EXPECT_EQ(brain.save_status().result(), IMP_OK);
  }
  stop = true;
  other.join();
  EXPECT_GT(polls, 0u);
  EXPECT_TRUE(log.empty()) << log.front();
}

// A struct with extra fields at its end, as in a newer header.
template <class T>
struct Newer {
  T known;
  std::uint64_t later = 0;

  explicit Newer(const T& from) : known(from) { known.header.size = sizeof(Newer); }
};

TEST_F(FrameTest, StructsOfNewerHeadersWork) {
  open();
  const imp_api* api = context.api();
  const std::uint32_t branch = 3;
  Newer desc(imp_brain_desc_init());
  desc.known.observation_count = 4;
  desc.known.branch_count = 1;
  desc.known.branch_sizes = &branch;
  imp_brain handle{};
  desc.later = 1;
  EXPECT_EQ(api->brain_create(context.handle(), &desc.known, &handle), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(api->last_error(), HasSubstr("imp_brain_desc"));
  EXPECT_THAT(api->last_error(), HasSubstr(std::to_string(sizeof desc)));
  EXPECT_THAT(api->last_error(), HasSubstr(std::to_string(sizeof(imp_brain_desc))));
  desc.later = 0;
  ASSERT_EQ(api->brain_create(context.handle(), &desc.known, &handle), IMP_OK) << api->last_error();

  Newer info(imp_brain_info_init());
  info.later = 7;
  ASSERT_EQ(api->brain_get_info(handle, &info.known), IMP_OK) << api->last_error();
  EXPECT_EQ(info.known.observation_count, 4u);
  EXPECT_GT(info.known.parameter_count, 0u);
  EXPECT_EQ(info.later, 7u);
  EXPECT_EQ(info.known.header.size, sizeof info);

  Newer frame_info(imp_frame_info_init());
  frame_info.known.frame = 1;
  ASSERT_EQ(api->frame_begin(context.handle(), &frame_info.known), IMP_OK) << api->last_error();
  ASSERT_EQ(api->frame_end(context.handle()), IMP_OK);
  Newer stats(imp_context_stats_init());
  stats.later = 7;
  ASSERT_EQ(api->tools->context_get_stats(context.handle(), &stats.known), IMP_OK);
  EXPECT_EQ(stats.known.frames, 1u);
  EXPECT_EQ(stats.later, 7u);
  Newer limits(imp_limits_init());
  EXPECT_EQ(api->context_set_limits(context.handle(), &limits.known), IMP_OK) << api->last_error();
  limits.known.header.size = offsetof(imp_limits, memory_cap_bytes);  // shorter than version 1

  EXPECT_EQ(api->context_set_limits(context.handle(), &limits.known), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(api->last_error(), HasSubstr("imp_limits"));
  EXPECT_EQ(api->brain_destroy(handle), IMP_OK);
}

}  // namespace

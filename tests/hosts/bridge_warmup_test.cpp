// T9. After warm-up every pipeline has run, beside the brains: drivers that compile at the first dispatch
// have nothing left to do in play, and nothing of a brain has changed. Frames are timed in a game that starts
// with an empty cache of the driver.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// ---- which pipelines ran: between Imprint and the driver ----

// Vulkan's functions have no user pointer.
struct Watch {
  std::mutex mutex;
  PFN_vkGetInstanceProcAddr get_instance = nullptr;
  PFN_vkGetDeviceProcAddr get_device = nullptr;
  PFN_vkCreateComputePipelines create = nullptr;
  PFN_vkCmdBindPipeline bind = nullptr;
  PFN_vkCmdDispatch dispatch = nullptr;
  PFN_vkCmdExecuteCommands execute = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  std::map<VkCommandBuffer, VkPipeline> bound;
  std::map<VkCommandBuffer, std::set<VkPipeline>> dispatched;
  std::set<VkPipeline> created, ran;

  void run(VkCommandBuffer commands) {
    const auto found = dispatched.find(commands);
    if (found != dispatched.end()) ran.insert(found->second.begin(), found->second.end());
  }
  std::size_t never_ran() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(created, [&](VkPipeline pipeline) { return !ran.contains(pipeline); }));
  }
} watch;

VkResult VKAPI_CALL create(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                           const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* callbacks,
                           VkPipeline* pipelines) {
  const VkResult result = watch.create(device, cache, count, infos, callbacks, pipelines);
  const std::lock_guard lock(watch.mutex);
  if (result == VK_SUCCESS) watch.created.insert(pipelines, pipelines + count);
  return result;
}
void VKAPI_CALL bind(VkCommandBuffer commands, VkPipelineBindPoint point, VkPipeline pipeline) {
  {
    const std::lock_guard lock(watch.mutex);
    watch.bound[commands] = pipeline;
  }
  watch.bind(commands, point, pipeline);
}
void VKAPI_CALL dispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  {
    const std::lock_guard lock(watch.mutex);
    watch.dispatched[commands].insert(watch.bound[commands]);
  }
  watch.dispatch(commands, x, y, z);
}
void VKAPI_CALL execute(VkCommandBuffer commands, std::uint32_t count, const VkCommandBuffer* list) {
  {
    const std::lock_guard lock(watch.mutex);
    for (std::uint32_t i = 0; i < count; ++i) watch.run(list[i]);
  }
  watch.execute(commands, count, list);
}
VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  {
    const std::lock_guard lock(watch.mutex);
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::uint32_t j = 0; j < infos[i].commandBufferCount; ++j) watch.run(infos[i].pCommandBuffers[j]);
  }
  return watch.submit(queue, count, infos, fence);
}

template <class F>
PFN_vkVoidFunction put_between(F& real, PFN_vkVoidFunction found, F between) {
  real = reinterpret_cast<F>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(between);
}

PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction real = watch.get_device(device, name);
  const std::string_view asked = name;
  if (!real) return nullptr;
  if (asked == "vkCreateComputePipelines") return put_between(watch.create, real, &create);
  if (asked == "vkCmdBindPipeline") return put_between(watch.bind, real, &bind);
  if (asked == "vkCmdDispatch") return put_between(watch.dispatch, real, &dispatch);
  if (asked == "vkCmdExecuteCommands") return put_between(watch.execute, real, &execute);
  if (asked == "vkQueueSubmit") return put_between(watch.submit, real, &submit);
  return real;
}
PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = watch.get_instance(instance, name);
  if (real && std::string_view(name) == "vkGetDeviceProcAddr")
    return put_between(watch.get_device, real, &device_function);
  return real;
}

// ---- a game ----

template <class Options>
Options steps() {
  Options options;
  options.credit_delay_s = 0;
  options.credit_width_s = 1e-3f;
  return options;
}

struct Case {
  const char* name;
  Way way;
  std::function<void(BrainDesc&)> choose;
};
PpoOptions ppo() {
  PpoOptions options = steps<PpoOptions>();
  options.rollout_steps = 32;
  options.batch_size = 16;
  return options;
}
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Way way : {Way::record, Way::lock}) {
    const bool records = way == Way::record;
    all.push_back({records ? "FeedbackRecording" : "FeedbackSubmitting", way,
                   [](BrainDesc& desc) { desc.learner = FeedbackOptions(); }});
    all.push_back({records ? "DqnRecording" : "DqnSubmitting", way,
                   [](BrainDesc& desc) { desc.learner = steps<DqnOptions>(); }});
    all.push_back(
        {records ? "PpoRecording" : "PpoSubmitting", way, [](BrainDesc& desc) { desc.learner = ppo(); }});
    all.push_back({records ? "CloningRecording" : "CloningSubmitting", way,
                   [](BrainDesc& desc) { desc.learner = CloningOptions(); }});
    all.push_back({records ? "CoachRecording" : "CoachSubmitting", way,
                   [](BrainDesc& desc) { desc.learner = steps<CoachOptions>(); }});
    // One hidden layer: with two, its largest kernel takes a software device 10 s to compile.
    all.push_back({records ? "SacRecording" : "SacSubmitting", way, [](BrainDesc& desc) {
                     desc.branch_sizes = {};
                     desc.continuous_count = 2;
                     desc.hidden_sizes = {32};
                     desc.learner = steps<SacOptions>();
                   }});
  }
  return all;
}

constexpr std::uint32_t kLatency = 4;

// A plain copy, so that another process may write it.
struct FrameTime {
  bool learns = false;
  double ms = 0;
  long faults = 0;  // pages that the process touched for the first time
};
constexpr int kFrames = 300;

class T9Warmup : public testing::TestWithParam<Case> {
 protected:
  // Each case has a cache of its own, so that no other case compiles its kernels first. Mesa reads the
  // variable whenever an instance lists its devices.
  void create_host() {
    const std::string cache = testing::TempDir() + "imprint-warm-cache-" + GetParam().name;
    if (first_start_) std::filesystem::remove_all(cache);
    ASSERT_EQ(setenv("MESA_SHADER_CACHE_DIR", cache.c_str(), 1), 0);
    host_ = std::make_unique<PlainHost>(HostProfile{"rich", VK_API_VERSION_1_1, false, false});
  }
  // Makes the host's device known through the watch if `watched`.
  void open(bool watched, const char* file = nullptr) {
    agent_ = {};
    brain_ = {};
    context_ = {};
    if (!host_) create_host();
    ASSERT_TRUE(host_->ok());
    side_ = std::make_unique<Side>(*host_);
    device_ = host_->describe();
    if (watched) {
      watch.get_instance = device_.get_instance_proc_addr;
      watch.created.clear();
      watch.ran.clear();
      device_.get_instance_proc_addr = &instance_function;
    }
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = 1'000'000'000;  // learning runs in the frame in which it begins
    limits.max_slice_us = 0;
    Made<Context> context =
        Context::create(Library(imp_get_api), info_of(device_, *side_, GetParam().way), HostDesc(), limits);
    ASSERT_TRUE(context) << context.outcome.message();
    context_ = std::move(*context);
    BrainDesc desc;
    desc.observation_count = 8;
    desc.branch_sizes = {4};
    desc.hidden_sizes = {32, 32};
    desc.action_latency_frames = kLatency;
    desc.snapshot_count = 2;
    GetParam().choose(desc);
    Made<Brain> brain = context_.create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    brain_ = std::move(*brain);
    Made<Agent> agent = brain_.create_agent();
    ASSERT_TRUE(agent);
    agent_ = std::move(*agent);
    if (file) ASSERT_WORKS(brain_.load(file));
  }
  void frame(FrameScope scope, bool plays) {
    const VkCommandBuffer commands = host_->begin_frame(++frame_);
    const double time = static_cast<double>(frame_) / 60;
    ASSERT_WORKS(context_.frame_begin(frame_, time, host_->safe_frame()));
    if (plays) play(time);
    if (GetParam().way == Way::record)
      ASSERT_WORKS(context_.record(commands, scope).outcome);
    else
      ASSERT_WORKS(context_.submit(scope));
    ASSERT_WORKS(context_.frame_end());
    host_->end_frame();
    host_->wait_idle();
  }
  void play(double time) {
    float seen[8];
    for (std::uint32_t i = 0; i < 8; ++i) seen[i] = static_cast<float>((frame_ * 7 + i * 3) % 11) / 11;
    const Made<Action> action = agent_.act();
    if (action.outcome.ready()) {
      const float worth = action.value.continuous_count > 0
                              ? action.value.continuous[0]
                              : static_cast<float>(action.value.branches[0]) / 4;
      if (!agent_.reward(worth))
        (void)agent_.feedback(action.value.branches[0] == 1 ? 1.0f : -1.0f, time, Credit::current);
    }
    Demonstration shown;
    shown.observation = seen;
    shown.branches = {static_cast<std::uint32_t>(frame_ % 4)};
    (void)agent_.demonstrate(shown);  // only some learners take it
    ASSERT_WORKS(agent_.observe(seen));
  }
  void warm_up() {
    ASSERT_WORKS(context_.warmup());
    if (GetParam().way == Way::record) {
      ASSERT_NO_FATAL_FAILURE(frame(FrameScope::warmup, false));
    }
  }
  void time_frames(std::span<FrameTime, kFrames> times, bool forgets);
  std::string saved(const std::string& name) {
    const std::string path = testing::TempDir() + "imprint-warm-" + name + ".brain";
    (void)std::remove(path.c_str());
    EXPECT_OUTCOME(brain_.save(path.c_str()));
    [&] { ASSERT_NO_FATAL_FAILURE(frame(FrameScope::everything, false)); }();
    host_->wait_idle();
    EXPECT_OUTCOME(context_.device_idle());
    EXPECT_OUTCOME(context_.destroy());
    return path;
  }

  bool first_start_ = false;  // of the game on this computer: the driver's cache is empty
  std::unique_ptr<PlainHost> host_;
  std::unique_ptr<Side> side_;
  imprint::vk::DeviceDescription device_;
  Context context_;
  Brain brain_;
  Agent agent_;
  std::uint64_t frame_ = 0;
};

// Times of one kind of frame, in milliseconds until the GPU is done. On a device that is a CPU, the time that
// the process computes, which other programs do not lengthen.
struct Clock {
  bool computes;
  double ms() const {
    if (computes) return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

long page_faults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt + used.ru_majflt;
}

// The frames of one kind.
void tell(const char* kind, const std::vector<FrameTime>& all, bool learns, bool exact, bool only_tell) {
  std::vector<double> ms;
  std::size_t slowest = 0;
  long faults = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].learns != learns) continue;
    if (ms.empty() || all[i].ms > all[slowest].ms) slowest = i;
    ms.push_back(all[i].ms);
    faults += all[i].faults;
  }
  ASSERT_GT(ms.size(), 3u) << kind;
  const double first = ms.front(), most = all[slowest].ms;
  std::ranges::sort(ms);
  const double median = ms[ms.size() / 2];
  std::printf(
      "  %s: %zu frames, median %.2f ms, slowest %.2f ms (%.1f times, frame %zu), first %.2f ms, %ld "
      "faults\n",
      kind, ms.size(), median, most, most / median, slowest, first, faults);
  if (only_tell) return;
  // Where the machine may be busy, a frame that waits for a compile takes longer than this.
  EXPECT_LE(most, exact ? 3 * median : 20 * median + 250) << kind << ", frame " << slowest;
}

// IMPRINT_WARMUP_NONE: prints what a host that records meets if it forgets the frame.
void T9Warmup::time_frames(std::span<FrameTime, kFrames> times, bool forgets) {
  ASSERT_NO_FATAL_FAILURE(open(false));
  VkPhysicalDeviceProperties device{};
  vkGetPhysicalDeviceProperties(host_->physical_device(), &device);
  const Clock clock{device.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU};
  const double begin = clock.ms();
  if (forgets)
    ASSERT_WORKS(context_.warmup());
  else
    ASSERT_NO_FATAL_FAILURE(warm_up());
  // A loading screen's frame, which recorders sent above: host, driver and Imprint touch a frame's memory.
  if (GetParam().way != Way::record) ASSERT_NO_FATAL_FAILURE(frame(FrameScope::warmup, false));
  host_->wait_idle();
  std::printf("%s: warm-up %.0f ms\n", GetParam().name, clock.ms() - begin);
  for (FrameTime& time : times) {
    const std::uint64_t slices = context_.stats()->slices;
    const long faults = page_faults();
    const double start = clock.ms();
    ASSERT_NO_FATAL_FAILURE(frame(FrameScope::frame, true));
    host_->wait_idle();
    time.ms = clock.ms() - start;
    time.faults = page_faults() - faults;
    time.learns = context_.stats()->slices > slices;
  }
  ASSERT_WORKS(context_.device_idle());
  ASSERT_WORKS(context_.destroy());
}

// IMPRINT_WARMUP_EXACT: at most 3 times the median. All runs play the same, each in a process of its own: the
// least time of each frame over the runs is its own work, without that of other programs.
TEST_P(T9Warmup, NoFrameWaitsForTheDriversCompiler) {
  first_start_ = true;
  const char* exact = std::getenv("IMPRINT_WARMUP_EXACT");
  const bool forgets = std::getenv("IMPRINT_WARMUP_NONE") != nullptr;
  std::vector<FrameTime> best(kFrames);
  if (!exact) {
    ASSERT_NO_FATAL_FAILURE(time_frames(std::span<FrameTime, kFrames>(best), forgets));
  } else {
    void* shared =
        mmap(nullptr, kFrames * sizeof(FrameTime), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    const std::span<FrameTime, kFrames> times(new (shared) FrameTime[kFrames], kFrames);
    for (int run = 0; run < std::max(1, std::atoi(exact)); ++run) {
      std::fflush(nullptr);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        time_frames(times, forgets);
        host_ = nullptr;
        std::fflush(nullptr);
        _exit(HasFailure() ? 1 : 0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << "run " << run;
      for (int i = 0; i < kFrames; ++i) {
        if (run > 0) ASSERT_EQ(times[i].learns, best[i].learns) << "frame " << i << " of run " << run;
        if (run == 0 || times[i].ms < best[i].ms) best[i] = times[i];
      }
    }
    munmap(shared, kFrames * sizeof(FrameTime));
  }
  tell("decides", best, false, exact != nullptr, forgets);
  tell("learns", best, true, exact != nullptr, forgets);
}

// And a trained brain that is warmed up is what its file says: weights, moments, counters and random streams.
// After the tests of first starts, which leave the driver's cache filled.
TEST_P(T9Warmup, RunsEveryPipelineBeforeTheFirstFrameAndChangesNoBrain) {
  ASSERT_NO_FATAL_FAILURE(open(true));
  ASSERT_NO_FATAL_FAILURE(warm_up());
  const std::size_t created = watch.created.size();
  EXPECT_GT(created, 5u);
  EXPECT_EQ(watch.never_ran(), 0u) << "of " << created;
  for (int i = 0; i < 150; ++i) ASSERT_NO_FATAL_FAILURE(frame(FrameScope::frame, true));
  host_->wait_idle();
  ASSERT_WORKS(context_.device_idle());
  const Made<imp_brain_stats> stats = brain_.stats();
  EXPECT_GT(stats->minibatches, 0u) << "nothing was learned";
  EXPECT_EQ(watch.created.size(), created);
  const std::string trained = saved("trained");
  ASSERT_NO_FATAL_FAILURE(open(false, trained.c_str()));
  BrainHash before{};
  const bool has_hash = GetParam().way != Way::record;
  if (has_hash) {
    const Made<BrainHash> hash = brain_.hash();
    ASSERT_TRUE(hash) << hash.outcome.message();
    before = *hash;
  }
  ASSERT_NO_FATAL_FAILURE(warm_up());
  if (has_hash) {
    const Made<BrainHash> after = brain_.hash();
    ASSERT_TRUE(after) << after.outcome.message();
    EXPECT_EQ(*after, before);
  }
  const std::string again = saved("again");
  EXPECT_GT(contents(trained).size(), 1000u);
  EXPECT_TRUE(contents(again) == contents(trained));
}

INSTANTIATE_TEST_SUITE_P(Of, T9Warmup, testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace

// T12. A game on a lost device: it is told once, destruction does not wait, and the newest host copy of the
// brain takes the same next step on a new device. bridge_faults_test.cpp fails every call.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/bridge_fault_shim.h"

namespace imprint::bridge {
namespace {

struct Hash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api->last_error()
#define EXPECT_LOST(call) EXPECT_EQ(call, IMP_ERROR_DEVICE_LOST) << api->last_error()

// A host and a game that shows its creature something every frame.
struct Game {
  explicit Game(std::uint32_t period, bool timeline = true)
      : host({"losing", timeline ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1, timeline, true}),
        pipelines(host.describe()),
        shim(host.describe(), pipelines),
        host_copy_period(period) {}
  ~Game() {
    if (context.id != 0) {
      EXPECT_EQ(api->context_destroy(context), IMP_OK) << api->last_error();
    }
    EXPECT_EQ(shim.alive_text(), "");
  }

  void open() {
    ASSERT_TRUE(host.ok());
    const vk::DeviceDescription device = host.describe();
    imp_vk_device_info info = device_info(host, device, IMP_QUEUE_SINGLE_THREAD);
    info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(shim.get_instance_proc_addr());
    const std::string shaders = testing::TempDir() + "imprint-fault-shaders";
    imp_host lent = imp_host_init();
    lent.shader_cache_directory = shaders.c_str();
    lent.user = this;
    lent.device_lost = [](void* user, const char* message) {
      static_cast<Game*>(user)->words.emplace_back(message);
    };
    imp_limits limits = imp_limits_init();
    limits.host_copy_period_frames = host_copy_period;
    limits.worker_threads = workers;
    ASSERT_WORKS(api->context_create(&info, &lent, &limits, &context));
    const game::BrainDesc desc = small_brain(3, 0, 5);
    ASSERT_WORKS(api->brain_create(context, c_form(desc), &brain));
    ASSERT_WORKS(api->agent_create(brain, 0, &agent));
    ASSERT_WORKS(api->context_warmup(context, nullptr, nullptr));
  }

  imp_result begin(std::uint64_t frame) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame;
    info.time_s = static_cast<double>(frame) / 60;
    return api->frame_begin(context, &info);
  }
  // A frame that shows the creature something, or one after that.
  void live(std::uint64_t frame, bool shows = true) {
    ASSERT_WORKS(begin(frame));
    if (shows) show(frame);
    ASSERT_WORKS(api->frame_submit(context, UINT32_MAX));
    ASSERT_WORKS(api->frame_end(context));
    ASSERT_WORKS(api->context_quiesce(context, 60000));  // longer than a frame on a slow device
    ASSERT_WORKS(api->context_resume(context));
  }
  void show(std::uint64_t frame) {
    const float seen[4] = {1.0f, static_cast<float>(frame % 3), -1.0f, static_cast<float>(frame % 5) - 2.0f};
    const std::uint32_t choice = static_cast<std::uint32_t>(frame % 3);
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen;
    shown.observation_count = 4;
    shown.branches = &choice;
    shown.branch_count = 1;
    ASSERT_WORKS(api->agent_demonstrate(agent, &shown));
    ASSERT_WORKS(api->agent_observe(agent, seen, 4));  // so that every frame has something to submit
  }
  Hash hash() {
    Hash found;
    EXPECT_EQ(api->context_drain(context, 60000), IMP_OK) << api->last_error();
    EXPECT_EQ(api->tools->brain_hash(brain, &found.low, &found.high), IMP_OK) << api->last_error();
    return found;
  }
  imp_brain_stats stats() {
    imp_brain_stats found = imp_brain_stats_init();
    EXPECT_EQ(api->tools->brain_get_stats(brain, &found), IMP_OK);
    return found;
  }
  // Plays until a copy of a frame later than `after` exists. Returns that frame.
  std::uint64_t wait_for_host_copy(std::uint64_t after) {
    for (int i = 0; i < 2000 && stats().host_copy_frame <= after; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return stats().host_copy_frame;
  }

  const imp_api* api = table();
  PlainHost host;
  KeptPipelines pipelines;
  FaultShim shim;
  std::uint32_t host_copy_period, workers = 1;
  imp_context context{};
  imp_brain brain{};
  imp_agent agent{};
  std::vector<std::string> words;  // device-lost messages
};

TEST(T12DeviceLost, BeforeTheFirstCopyNothingIsAskedForThatIsSet) {
  Game game(600);
  ASSERT_NO_FATAL_FAILURE(game.open());
  const imp_api* api = game.api;
  ASSERT_WORKS(game.begin(1));
  ASSERT_NO_FATAL_FAILURE(game.show(1));
  game.shim.lose();
  EXPECT_LOST(api->frame_submit(game.context, UINT32_MAX));
  game.shim.told();
  EXPECT_LOST(api->frame_end(game.context));
  EXPECT_LOST(api->brain_save(game.brain, (testing::TempDir() + "imprint-lost.brain").c_str()));
  const std::string error = api->last_error();
  EXPECT_NE(error.find("has no copy in host memory yet"), std::string::npos) << error;
  EXPECT_EQ(error.find("host_copy_period_frames"), std::string::npos) << error;
  ASSERT_WORKS(api->context_destroy(game.context));
  game.context = {};
}

TEST(T12DeviceLost, IsToldOnceAndTheDeviceLeftAlone) {
  Game game(0);
  ASSERT_NO_FATAL_FAILURE(game.open());
  const imp_api* api = game.api;
  for (std::uint64_t frame = 1; frame <= 8; ++frame) ASSERT_NO_FATAL_FAILURE(game.live(frame));
  ASSERT_WORKS(game.begin(9));
  ASSERT_NO_FATAL_FAILURE(game.show(9));
  game.shim.lose();
  EXPECT_LOST(api->frame_submit(game.context, UINT32_MAX));
  game.shim.told();
  ASSERT_EQ(game.words.size(), 1u);
  EXPECT_NE(game.words[0], "");
  EXPECT_LOST(api->frame_end(game.context));
  EXPECT_LOST(game.begin(10));
  EXPECT_LOST(api->context_drain(game.context, 1000));
  EXPECT_LOST(api->context_quiesce(game.context, 1000));
  EXPECT_LOST(api->brain_save(game.brain, (testing::TempDir() + "imprint-lost.brain").c_str()));
  EXPECT_NE(std::string(api->last_error()).find("host_copy_period_frames"), std::string::npos)
      << api->last_error();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_WORKS(api->context_destroy(game.context));
  game.context = {};
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2))
      << "waited for a device that is gone";
  EXPECT_EQ(game.words.size(), 1u);
  EXPECT_EQ(game.shim.touches_after_loss(), 0u) << game.shim.first_touch();
}

// context_destroy is the last function that looks whether the GPU has finished.
TEST(T12DeviceLost, IsToldAtTheEndToo) {
  Game game(0);
  ASSERT_NO_FATAL_FAILURE(game.open());
  const imp_api* api = game.api;
  ASSERT_WORKS(game.begin(1));
  ASSERT_NO_FATAL_FAILURE(game.show(1));
  ASSERT_WORKS(api->frame_submit(game.context, UINT32_MAX));
  ASSERT_WORKS(api->frame_end(game.context));
  game.shim.lose();
  ASSERT_WORKS(api->context_destroy(game.context));
  game.context = {};
  EXPECT_EQ(game.words.size(), 1u);
}

// Without worker threads, context_run_jobs writes files, on a lost device too.
TEST(T12DeviceLost, AHostCopyIsSavedWithoutThreads) {
  const std::string path = testing::TempDir() + "imprint-threadless.brain";
  Game game(1);
  game.workers = 0;
  ASSERT_NO_FATAL_FAILURE(game.open());
  const imp_api* api = game.api;
  for (std::uint64_t frame = 1; game.stats().host_copy_frame == 0; ++frame) {
    ASSERT_LT(frame, 100u) << "no host copy";
    ASSERT_NO_FATAL_FAILURE(game.live(frame));
    ASSERT_WORKS(api->tools->context_run_jobs(game.context, 100'000, nullptr));
  }
  ASSERT_WORKS(api->context_notify_device_lost(game.context));
  ASSERT_WORKS(api->brain_save(game.brain, path.c_str()));
  EXPECT_EQ(api->brain_save_status(game.brain), IMP_NOT_READY);
  ASSERT_WORKS(api->tools->context_run_jobs(game.context, 100'000, nullptr));
  EXPECT_EQ(api->brain_save_status(game.brain), IMP_OK) << api->last_error();
}

TEST(T12DeviceLost, TheHostMayTellItself) {
  Game game(0);
  ASSERT_NO_FATAL_FAILURE(game.open());
  const imp_api* api = game.api;
  ASSERT_NO_FATAL_FAILURE(game.live(1));
  ASSERT_WORKS(api->context_drain(game.context, 60000));
  ASSERT_WORKS(api->context_notify_device_lost(game.context));
  const std::uint64_t calls = game.shim.calls();
  EXPECT_LOST(game.begin(2));
  EXPECT_LOST(api->agent_reward(game.agent, 1)) << "no frame is open, because of the loss";
  std::uint64_t low = 0, high = 0;
  EXPECT_LOST(api->tools->brain_hash(game.brain, &low, &high));
  EXPECT_LOST(api->context_warmup(game.context, nullptr, nullptr));
  EXPECT_EQ(game.shim.calls(), calls);
  EXPECT_TRUE(game.words.empty()) << "the host knows already";
}

// One game without a loss, and one whose device is lost in each frame in turn: its host copy takes the same
// next steps on a new device.
TEST(T12DeviceLost, LearningContinuesOnANewDevice) {
  constexpr std::uint64_t kFrames = 40;
  const std::string path = testing::TempDir() + "imprint-host-copy.brain";
  Hash end;
  {
    Game game(0);
    ASSERT_NO_FATAL_FAILURE(game.open());
    for (std::uint64_t frame = 1; frame <= kFrames; ++frame) ASSERT_NO_FATAL_FAILURE(game.live(frame));
    end = game.hash();
  }
  for (const std::uint64_t lost : {14u, 15u, 16u, 22u}) {
    SCOPED_TRACE("lost in frame " + std::to_string(lost));
    std::uint64_t host_copy = 0;
    {
      Game game(6);
      ASSERT_NO_FATAL_FAILURE(game.open());
      const imp_api* api = game.api;
      for (std::uint64_t frame = 1; frame < lost; ++frame) ASSERT_NO_FATAL_FAILURE(game.live(frame));
      host_copy = game.wait_for_host_copy(lost - 12);
      ASSERT_GT(host_copy, 0u) << "no host copy in " << lost << " frames";
      EXPECT_LT(host_copy, lost);
      game.shim.lose();
      if (game.begin(lost) == IMP_OK) {
        ASSERT_NO_FATAL_FAILURE(game.show(lost));
        EXPECT_LOST(api->frame_submit(game.context, UINT32_MAX));
        EXPECT_LOST(api->frame_end(game.context));
      }
      game.shim.told();
      ASSERT_EQ(game.words.size(), 1u);
      ASSERT_WORKS(api->brain_save(game.brain, path.c_str()));
      host_copy = game.stats().host_copy_frame;
      imp_result saved = IMP_NOT_READY;
      while (saved == IMP_NOT_READY) saved = api->brain_save_status(game.brain);
      ASSERT_WORKS(saved);
      EXPECT_EQ(game.shim.touches_after_loss(), 0u) << game.shim.first_touch();
    }
    Game game(6);
    ASSERT_NO_FATAL_FAILURE(game.open());
    const imp_api* api = game.api;
    ASSERT_WORKS(api->brain_load(game.brain, path.c_str()));
    // The observation of the copy's own frame waits in it for the step that begins there.
    for (std::uint64_t frame = host_copy; frame <= kFrames; ++frame)
      ASSERT_NO_FATAL_FAILURE(game.live(frame, frame > host_copy));
    EXPECT_TRUE(game.hash() == end) << "went another way from frame " << host_copy;
  }
}

// Taking host copies changes nothing.
TEST(T12DeviceLost, AHostCopyLeavesNoTrace) {
  Hash hashes[2];
  for (const std::uint32_t period : {0u, 1u}) {
    Game game(period);
    ASSERT_NO_FATAL_FAILURE(game.open());
    for (std::uint64_t frame = 1; frame <= 40; ++frame) ASSERT_NO_FATAL_FAILURE(game.live(frame));
    hashes[period] = game.hash();
    EXPECT_EQ(game.stats().host_copy_frame > 0, period > 0);
    imp_context_stats all = imp_context_stats_init();
    ASSERT_EQ(game.api->tools->context_get_stats(game.context, &all), IMP_OK);
    EXPECT_EQ(all.frame_allocations, 0u);
    EXPECT_EQ(all.frame_waits, 0u);
  }
  EXPECT_TRUE(hashes[0] == hashes[1]);
}

}  // namespace
}  // namespace imprint::bridge

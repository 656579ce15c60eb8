// T8. Saves at quit: they are on disk when the context goes, or the host is told; and a process that is
// killed at any moment leaves an old file or a new one, never none.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;
namespace fs = std::filesystem;

BrainDesc desc_of(std::uint32_t index) {
  FeedbackOptions options;
  options.learn_period_frames = 5;
  options.batch_size = 4;
  options.replay_capacity = 16;
  BrainDesc desc;
  desc.observation_count = 4;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {8};
  desc.learner = options;
  desc.snapshot_count = 1;
  desc.action_latency_frames = 4;
  desc.seed = index;
  return desc;
}

// A game with some brains that learn, each with a file.
class Game {
 public:
  Game(PlainHost& host, Way way, std::uint32_t brain_count, const fs::path& folder,
       const imp_host& lent = HostDesc())
      : side_{host}, device_(host.describe()), way_(way) {
    Made<Context> made = Context::create(Library(imp_get_api), info_of(device_, side_, way), lent);
    EXPECT_TRUE(made) << made.outcome.message();
    host.finish_frames();
    first_frame_ = frame_ = host.safe_frame();  // frames of an earlier game
    context = std::move(*made);
    for (std::uint32_t i = 0; i < brain_count; ++i) {
      Made<Brain> brain = context.create_brain(desc_of(i));
      EXPECT_TRUE(brain) << brain.outcome.message();
      Made<Agent> agent = brain->create_agent();
      EXPECT_TRUE(agent) << agent.outcome.message();
      brains.push_back(std::move(*brain));
      agents_.push_back(std::move(*agent));
      paths.push_back((folder / ("creature" + std::to_string(i) + ".brain")).string());
      if (fs::exists(paths.back())) EXPECT_OUTCOME(brains.back().load(paths.back().c_str()));
    }
    EXPECT_OUTCOME(context.warmup());
  }

  void frame(FrameScope scope = FrameScope::frame) {
    PlainHost& host = side_.host;
    const VkCommandBuffer commands = host.begin_frame(++frame_);
    EXPECT_OUTCOME(context.frame_begin(frame_, static_cast<double>(frame_) / 60, host.safe_frame()));
    const float seen[4] = {1, 0, -1, static_cast<float>(frame_ % 3)};
    Demonstration shown;
    shown.observation = seen;
    shown.branches = {static_cast<std::uint32_t>(frame_ % 3)};
    for (Agent& agent : agents_) {
      EXPECT_OUTCOME(agent.observe(seen));
      EXPECT_OUTCOME(agent.demonstrate(shown));
    }
    if (way_ == Way::record)
      EXPECT_OUTCOME(context.record(commands, scope).outcome);
    else
      EXPECT_OUTCOME(context.submit(scope));
    EXPECT_OUTCOME(context.frame_end());
    host.end_frame();
    // The host waits for its own frames in flight, not for Imprint's queue.
    if (way_ == Way::exclusive) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void save_all() {
    for (std::size_t i = 0; i < brains.size(); ++i) EXPECT_OUTCOME(brains[i].save(paths[i].c_str()));
  }
  // Every frame so far had its decision. On an exclusive queue a slow machine falls behind; then bits differ.
  bool is_on_time() const {
    return std::ranges::all_of(brains, [&](const Brain& brain) {
      const imp_brain_stats stats = brain.stats().value;
      return stats.late_actions == 0 && stats.decisions == frame_ - first_frame_;
    });
  }
  bool frames_complete() const { return way_ == Way::record || way_ == Way::submit_without_fence; }
  // The end of a game that cannot drain: one last frame.
  void last_frame() {
    if (!frames_complete()) return;
    frame(FrameScope::everything);
    side_.host.wait_idle();
    EXPECT_OUTCOME(context.device_idle());
  }

  Context context;
  std::vector<Brain> brains;
  std::vector<std::string> paths;

 private:
  Side side_;
  imprint::vk::DeviceDescription device_;
  Way way_;
  std::vector<Agent> agents_;
  std::uint64_t first_frame_ = 0, frame_ = 0;
};

fs::path empty_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("imprint-quit-" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// In the middle of a learn step, after a snapshot: the files hold the same, to the byte.
TEST(T8Quit, SavesAreOnDiskWhenTheContextGoes) {
  std::string expected;
  for (const Way way : {Way::lock, Way::record, Way::submit_without_fence, Way::exclusive}) {
    SCOPED_TRACE(static_cast<int>(way));
    const fs::path folder = empty_folder("all");
    PlainHost host({"rich", VK_API_VERSION_1_3, true, true, way == Way::exclusive});
    ASSERT_TRUE(host.ok());
    {
      Game game(host, way, 3, folder);
      for (int i = 0; i < 33; ++i) game.frame();
      const bool on_time = game.is_on_time();
      EXPECT_TRUE(on_time || way == Way::exclusive);
      ASSERT_WORKS(game.brains[0].snapshot().outcome);
      game.save_all();
      if (!game.frames_complete()) game.frame(FrameScope::everything);
      game.last_frame();
      if (game.frames_complete()) {
        for (const Brain& brain : game.brains) {
          for (int i = 0; i < 5000 && brain.save_status().code() == Code::not_ready; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          EXPECT_OUTCOME(brain.save_status());
        }
      }
      ASSERT_WORKS(game.context.destroy());
      std::string all;
      for (const std::string& path : game.paths) all += contents(path);
      EXPECT_GT(all.size(), 3000u);
      if (expected.empty()) expected = all;
      EXPECT_TRUE(all == expected || !on_time) << "other bytes than by the first way";
    }
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }
}

// A host that submits needs no more than context_destroy.
TEST(T8Quit, DestroyingCompletesASaveThatWasJustBegun) {
  const fs::path folder = empty_folder("begun");
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Game game(host, Way::lock, 2, folder);
  for (int i = 0; i < 12; ++i) game.frame();
  game.save_all();
  host.wait_idle();
  ASSERT_WORKS(game.context.destroy());
  for (const std::string& path : game.paths) EXPECT_GT(contents(path).size(), 1000u) << path;
}

// Where Imprint cannot complete a save, it says which, once.
TEST(T8Quit, ALostSaveIsSaid) {
  const fs::path folder = empty_folder("lost");
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  for (const bool writes : {false, true}) {
    Game game(host, Way::record, 1, folder);
    for (int i = 0; i < 12; ++i) game.frame();
    if (writes) game.paths[0] = "/no/such/folder/creature.brain";
    game.save_all();
    if (writes) game.last_frame();
    host.wait_idle();
    ASSERT_WORKS(game.context.device_idle());
    const Outcome refused = game.context.destroy();
    EXPECT_FALSE(refused);
    EXPECT_NE(std::string(refused.message()).find(game.paths[0]), std::string::npos) << refused.message();
    EXPECT_TRUE(game.context) << "nothing was destroyed";
    if (!writes) {
      EXPECT_EQ(refused.code(), Code::wrong_state);
    }
    EXPECT_OUTCOME(game.context.destroy());  // a second call gives it up
    EXPECT_FALSE(fs::exists(game.paths[0]));
  }
  // A save that failed is said even if it was said to wait before.
  Game game(host, Way::record, 1, folder);
  game.frame();
  game.paths[0] = "/no/such/folder/creature.brain";
  game.save_all();
  host.wait_idle();
  ASSERT_WORKS(game.context.device_idle());
  EXPECT_FALSE(game.context.destroy());
  game.last_frame();
  EXPECT_FALSE(game.context.destroy());
  EXPECT_OUTCOME(game.context.destroy());
}

// ---- killed at any moment ----

constexpr const char* kFolder = "IMPRINT_QUIT_FOLDER";

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* const given = std::getenv(variable);
  return given ? static_cast<std::uint32_t>(std::atoi(given)) : otherwise;
}
std::uint32_t creature_count() { return number_from("IMPRINT_QUIT_BRAINS", 12); }

// The game that is killed, as a program of its own: loads all, plays, saves all, quits.
TEST(QuitChild, DISABLED_Plays) {
  const char* const folder = std::getenv(kFolder);
  if (!folder) GTEST_SKIP() << "only as a child";
  const Way way = fs::exists(fs::path(folder) / "records") ? Way::record : Way::lock;
  PlainHost host({"rich", VK_API_VERSION_1_3, true, false});
  ASSERT_TRUE(host.ok());
  Game game(host, way, creature_count(), folder);
  for (int i = 0; i < 8; ++i) game.frame();
  std::ofstream(fs::path(folder) / "saves") << 1;  // tells the parent
  game.save_all();
  game.last_frame();
  host.wait_idle();
  ASSERT_WORKS(game.context.destroy());
  std::ofstream(fs::path(folder) / "quits") << 1;
}

pid_t start_child(const fs::path& folder) {
  fs::remove(folder / "saves");
  fs::remove(folder / "quits");
  const pid_t child = fork();
  if (child != 0) return child;
  (void)setenv(kFolder, folder.c_str(), 1);
  (void)!freopen("/dev/null", "w", stdout);
  (void)execl("/proc/self/exe", "quit", "--gtest_filter=QuitChild.*", "--gtest_also_run_disabled_tests",
              nullptr);
  _exit(127);
}

class T8QuitKilled : public testing::TestWithParam<Way> {
 protected:
  // Every file is whole: a brain of the same shape takes it.
  void expect_files(const fs::path& folder, const std::string& when) {
    if (!checker_) {
      imp_standalone_info device = imp_standalone_info_init();
      device.device = "cpu";
      Made<Context> made = Context::create_standalone(Library(imp_get_api), device);
      ASSERT_TRUE(made) << made.outcome.message();
      checker_ = std::move(*made);
      Made<Brain> brain = checker_.create_brain(desc_of(0));
      ASSERT_TRUE(brain);
      brain_ = std::move(*brain);
    }
    for (std::uint32_t i = 0; i < creature_count(); ++i) {
      const fs::path path = folder / ("creature" + std::to_string(i) + ".brain");
      SCOPED_TRACE(when + ": " + path.string());
      ASSERT_TRUE(fs::exists(path));
      ASSERT_WORKS(brain_.load(path.c_str()));
    }
  }

  Context checker_;
  Brain brain_;
  std::chrono::microseconds saving_time_{};
};

// IMPRINT_QUIT_KILLS and IMPRINT_QUIT_BRAINS: more of them.
TEST_P(T8QuitKilled, LeavesAnOldFileOrANewOne) {
  const fs::path folder = empty_folder(GetParam() == Way::record ? "killed-record" : "killed-lock");
  if (GetParam() == Way::record) std::ofstream(folder / "records") << 1;
  const auto play = [&](std::chrono::microseconds kill_after) {
    const pid_t child = start_child(folder);
    ASSERT_GT(child, 0);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::minutes(5);
    int status = 0;
    pid_t ended = 0;
    while (!fs::exists(folder / "saves") && Clock::now() < end &&
           (ended = waitpid(child, &status, WNOHANG)) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    const Clock::time_point saves = Clock::now();
    if (kill_after.count() > 0) {
      std::this_thread::sleep_for(kill_after);
      (void)kill(child, SIGKILL);
    }
    if (ended == 0) {
      ASSERT_EQ(waitpid(child, &status, 0), child);
    }
    if (kill_after.count() == 0) {
      saving_time_ = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - saves);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child failed";
    }
  };
  ASSERT_NO_FATAL_FAILURE(play({}));  // the old files
  ASSERT_NO_FATAL_FAILURE(expect_files(folder, "quit"));
  const std::uint32_t kills = number_from("IMPRINT_QUIT_KILLS", 4);
  std::mt19937 random(static_cast<std::uint32_t>(GetParam()) + 7);
  std::uint32_t in_time = 0;
  std::chrono::microseconds window = saving_time_;
  for (std::uint32_t i = 0; i < kills; ++i) {
    const auto after = std::chrono::microseconds(1 + random() % static_cast<std::uint32_t>(window.count()));
    ASSERT_NO_FATAL_FAILURE(play(after));
    const bool late = fs::exists(folder / "quits");
    in_time += !late;
    if (late) window = std::max(after / 2, std::chrono::microseconds(1));  // the measured run was slower
    ASSERT_NO_FATAL_FAILURE(
        expect_files(folder, "killed " + std::to_string(after.count()) + " us after the saves began"));
  }
  std::printf("killed %u times, %u before the game had quit, at last within %.1f ms; %u creatures; ", kills,
              in_time, static_cast<double>(window.count()) / 1000, creature_count());
  std::printf("quitting took %.1f ms\n", static_cast<double>(saving_time_.count()) / 1000);
  EXPECT_TRUE(kills == 0 || in_time > 0) << "killed too late to show anything";
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Of, T8QuitKilled, testing::Values(Way::record, Way::lock), [](const auto& one) {
  return std::string(one.param == Way::record ? "Recording" : "Submitting");
});

}  // namespace

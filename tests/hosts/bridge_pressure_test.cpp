// T11. Memory pressure, by the driver's budget or the cap: learning logs it, pauses and leaves the device,
// and returns by itself with the same bits. Meanwhile agents act and brains are saved; frames allocate,
// compile and wait for nothing.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/hosts/bridge_abi.h"

namespace imprint::bridge {
namespace {

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api->last_error()

// A driver whose memory budget the test sets. One at a time: Vulkan's functions have no user pointer.
struct Budgeted {
  PFN_vkGetInstanceProcAddr real = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties2 properties = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
  std::atomic<VkDeviceSize> used{0};
  static constexpr VkDeviceSize kBudget = 1000u << 20;
};
Budgeted budgeted;

void VKAPI_CALL budgeted_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* properties) {
  budgeted.properties(device, properties);
  for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link; link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    auto& budget = *reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(link);
    for (std::uint32_t heap = 0; heap < properties->memoryProperties.memoryHeapCount; ++heap) {
      budget.heapBudget[heap] = Budgeted::kBudget;
      budget.heapUsage[heap] = budgeted.used;
    }
  }
}

// The device's own list, and the extension in the case that it is not in it.
VkResult VKAPI_CALL budgeted_extensions(VkPhysicalDevice device, const char* layer, std::uint32_t* count,
                                        VkExtensionProperties* list) {
  std::uint32_t own = 0;
  if (const VkResult result = budgeted.extensions(device, layer, &own, nullptr); result != VK_SUCCESS)
    return result;
  if (list) {
    std::uint32_t room = own;
    if (const VkResult result = budgeted.extensions(device, layer, &room, list); result != VK_SUCCESS)
      return result;
    list[own] = {"VK_EXT_memory_budget", 1};
  }
  *count = own + 1;
  return VK_SUCCESS;
}

PFN_vkVoidFunction VKAPI_CALL budgeted_function(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetPhysicalDeviceMemoryProperties2") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(
        static_cast<PFN_vkGetPhysicalDeviceMemoryProperties2>(budgeted_properties));
  if (std::strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(
        static_cast<PFN_vkEnumerateDeviceExtensionProperties>(budgeted_extensions));
  return budgeted.real(instance, name);
}

struct Hash {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};

constexpr std::uint32_t kReplay = 300'000;  // samples of 9 numbers
constexpr std::uint64_t kReplayBytes = std::uint64_t{kReplay} * 9 * 4;
constexpr VkDeviceSize kAmple = 100u << 20, kTooMuch = Budgeted::kBudget + 1;

// A game with one brain, on a device whose budget the test sets.
struct Game {
  explicit Game(std::uint32_t host_copy_period = 0) : host({"squeezed", VK_API_VERSION_1_3, true}) {
    budgeted.used = kAmple;
    open(host_copy_period);
  }
  ~Game() {
    if (context.id != 0) {
      EXPECT_EQ(api->context_destroy(context), IMP_OK) << api->last_error();
    }
    EXPECT_EQ(host.messages(), 0u) << host.first_message();
  }

  void open(std::uint32_t host_copy_period) {
    ASSERT_TRUE(host.ok());
    const vk::DeviceDescription device = host.describe();
    budgeted.real = device.get_instance_proc_addr;
    const auto real = [&](const char* name) { return budgeted.real(device.instance, name); };
    budgeted.properties = reinterpret_cast<PFN_vkGetPhysicalDeviceMemoryProperties2>(
        real("vkGetPhysicalDeviceMemoryProperties2"));
    budgeted.extensions = reinterpret_cast<PFN_vkEnumerateDeviceExtensionProperties>(
        real("vkEnumerateDeviceExtensionProperties"));
    imp_vk_device_info info = device_info(host, device, IMP_QUEUE_SINGLE_THREAD);
    const char* const extension = "VK_EXT_memory_budget";
    info.get_instance_proc_addr = reinterpret_cast<imp_get_instance_proc_addr>(
        static_cast<PFN_vkGetInstanceProcAddr>(budgeted_function));
    info.device_extensions = &extension;
    info.device_extension_count = 1;
    const std::string shaders = testing::TempDir() + "imprint-pressure-shaders";
    imp_host lent = imp_host_init();
    lent.shader_cache_directory = shaders.c_str();
    lent.user = this;
    lent.log = [](void* user, imp_log_level, const char* text) {
      auto& self = *static_cast<Game*>(user);
      const std::lock_guard lock(self.mutex);
      self.log.emplace_back(text);
    };
    limits.host_copy_period_frames = host_copy_period;
    ASSERT_WORKS(api->context_create(&info, &lent, &limits, &context));
    game::BrainDesc desc;
    desc.observation_count = 4;
    desc.branch_sizes = {3};
    desc.hidden_sizes = {8};
    game::FeedbackOptions options;
    options.learn_period_frames = 3;
    options.batch_size = 16;
    options.replay_capacity = kReplay;
    desc.learner = options;
    desc.snapshot_count = 1;
    ASSERT_WORKS(api->brain_create(context, c_form(desc), &brain));
    ASSERT_WORKS(api->agent_create(brain, 0, &agent));
    ASSERT_WORKS(api->context_warmup(context, nullptr, nullptr));
  }

  // A frame that shows the creature something, or one in which it only acts.
  void live(bool shows) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = ++number;
    info.time_s = static_cast<double>(number) / 60;
    ASSERT_WORKS(api->frame_begin(context, &info));
    const float seen[4] = {1, 0, -1, static_cast<float>(number % 3)};
    if (shows) {
      const std::uint32_t choice = static_cast<std::uint32_t>(number % 3);
      imp_demonstration shown = imp_demonstration_init();
      shown.observation = seen;
      shown.observation_count = 4;
      shown.branches = &choice;
      shown.branch_count = 1;
      ASSERT_WORKS(api->agent_demonstrate(agent, &shown));
    }
    ASSERT_WORKS(api->agent_observe(agent, seen, 4));
    if (number > 4) {
      imp_action action = imp_action_init();
      ASSERT_WORKS(api->agent_act(agent, &action));  // acting never pauses
    }
    ASSERT_WORKS(api->frame_submit(context, UINT32_MAX));
    ASSERT_WORKS(api->frame_end(context));
    ASSERT_WORKS(api->context_quiesce(context, 60000));
    ASSERT_WORKS(api->context_resume(context));
  }
  // Plays frames that show nothing until the condition holds.
  void live_until(const std::function<bool()>& so) {
    for (int i = 0; i < 4000 && !so() && !testing::Test::HasFatalFailure(); ++i) {
      live(false);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ASSERT_TRUE(so());
  }
  void learn_until(std::uint64_t minibatches) {
    live_until([&] { return brain_stats().minibatches >= minibatches; });
    EXPECT_EQ(brain_stats().minibatches, minibatches);
  }

  imp_context_stats stats() {
    imp_context_stats found = imp_context_stats_init();
    EXPECT_EQ(api->tools->context_get_stats(context, &found), IMP_OK);
    return found;
  }
  imp_brain_stats brain_stats() {
    imp_brain_stats found = imp_brain_stats_init();
    EXPECT_EQ(api->tools->brain_get_stats(brain, &found), IMP_OK);
    return found;
  }
  std::size_t said(const char* what) {
    const std::lock_guard lock(mutex);
    std::size_t times = 0;
    for (const std::string& line : log) times += line.find(what) != std::string::npos;
    return times;
  }
  Hash hash() {
    Hash found;
    EXPECT_EQ(api->context_drain(context, 60000), IMP_OK) << api->last_error();
    EXPECT_EQ(api->tools->brain_hash(brain, &found.low, &found.high), IMP_OK) << api->last_error();
    return found;
  }
  void save(const std::string& path) {
    ASSERT_WORKS(api->brain_save(brain, path.c_str()));
    imp_result saved = IMP_NOT_READY;
    live_until([&] { return (saved = api->brain_save_status(brain)) != IMP_NOT_READY; });
    ASSERT_WORKS(saved);
  }
  std::string report() {
    std::size_t size = 0;
    EXPECT_EQ(api->tools->context_get_report_text(context, nullptr, &size), IMP_OK);
    std::string text(size, ' ');
    EXPECT_EQ(api->tools->context_get_report_text(context, text.data(), &size), IMP_OK);
    return text;
  }
  void expect_quiet_frames() {
    const imp_context_stats found = stats();
    EXPECT_EQ(found.frame_allocations, 0u);
    EXPECT_EQ(found.frame_compiles, 0u);
    EXPECT_EQ(found.frame_waits, 0u);
  }

  const imp_api* api = table();
  PlainHost host;
  imp_limits limits = imp_limits_init();
  imp_context context{};
  imp_brain brain{};
  imp_agent agent{};
  std::uint64_t number = 0;
  std::mutex mutex;
  std::vector<std::string> log;
};

constexpr std::uint64_t kMinibatches = 30;

// A game without pressure.
Hash undisturbed() {
  Game game;
  for (int i = 0; i < 20; ++i) game.live(true);
  game.learn_until(kMinibatches);
  return game.hash();
}

TEST(T11Pressure, LearningLeavesTheDeviceAndComesBackWithTheSameBits) {
  const std::string path = testing::TempDir() + "imprint-pressure.brain";
  Hash away;
  {
    Game game(10);
    const imp_api* api = game.api;
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(game.live(true));
    const imp_context_stats before = game.stats();
    EXPECT_EQ(before.memory_pressure, 0u);
    EXPECT_EQ(before.evicted_bytes, 0u);

    budgeted.used = kTooMuch;
    ASSERT_NO_FATAL_FAILURE(game.live_until([&] { return game.brain_stats().evicted_bytes > 0; }));
    EXPECT_EQ(game.said("learning pauses and gives its memory back"), 1u);
    EXPECT_EQ(game.said("learning has left the device; its replay memory is in host memory"), 1u);
    EXPECT_GT(game.stats().evicted_bytes, kReplayBytes);
    // The memory goes back to the driver, not only to the pool: the replay and its readbacks.
    ASSERT_NO_FATAL_FAILURE(game.live_until(
        [&] { return game.stats().bytes_reserved + 3 * kReplayBytes <= before.bytes_reserved; }));
    const std::uint64_t paused = game.brain_stats().minibatches;
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
    EXPECT_EQ(game.brain_stats().minibatches, paused) << "learning continued";
    EXPECT_EQ(game.stats().memory_pressure, 1u);
    EXPECT_NE(game.report().find("memory pressure: learning pauses"), std::string::npos) << game.report();
    game.expect_quiet_frames();
    ASSERT_NO_FATAL_FAILURE(game.save(path));
    away = game.hash();

    budgeted.used = Budgeted::kBudget * 98 / 100;
    for (int i = 0; i < 40; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
    EXPECT_EQ(game.stats().memory_pressure, 1u) << "just enough is no room";

    ASSERT_WORKS(api->brain_set_learning(game.brain, 0));  // so that the hash comes before its next step
    budgeted.used = Budgeted::kBudget / 2;
    ASSERT_NO_FATAL_FAILURE(game.live_until([&] { return game.brain_stats().evicted_bytes == 0; }));
    EXPECT_EQ(game.said("learning continues"), 1u);
    EXPECT_EQ(game.said("learning is back on the device"), 1u);
    EXPECT_TRUE(game.hash() == away) << "a different brain came back";
    EXPECT_EQ(game.brain_stats().minibatches, paused);
    ASSERT_WORKS(api->brain_set_learning(game.brain, 1));
    ASSERT_NO_FATAL_FAILURE(game.learn_until(kMinibatches));
    game.expect_quiet_frames();
    EXPECT_TRUE(game.hash() == undisturbed()) << "it learned something else";
  }
  Game other;
  const imp_api* api = other.api;
  ASSERT_WORKS(api->brain_load(other.brain, path.c_str()));
  EXPECT_TRUE(other.hash() == away) << "what was saved meanwhile is another brain";
}

TEST(T11Pressure, TheCapIsTheGamesOwnWayToAsk) {
  Game game;
  const imp_api* api = game.api;
  for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(game.live(true));
  const std::uint64_t before = game.stats().bytes_reserved;
  imp_limits less = game.limits;
  less.memory_cap_bytes = before - (1u << 20);
  ASSERT_WORKS(api->context_set_limits(game.context, &less));
  ASSERT_NO_FATAL_FAILURE(
      game.live_until([&] { return game.stats().bytes_reserved <= less.memory_cap_bytes; }));
  EXPECT_EQ(game.stats().memory_pressure, 1u);
  for (int i = 0; i < 80; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
  EXPECT_GT(game.stats().evicted_bytes, 0u) << "there is no room for it, and it does not come and go";
  ASSERT_WORKS(api->context_set_limits(game.context, &game.limits));
  ASSERT_NO_FATAL_FAILURE(
      game.live_until([&] { return game.stats().memory_pressure == 0 && game.stats().evicted_bytes == 0; }));
  ASSERT_NO_FATAL_FAILURE(game.learn_until(kMinibatches));
  EXPECT_TRUE(game.hash() == undisturbed());
  game.expect_quiet_frames();
}

// Restoring a snapshot meanwhile happens when it can.
TEST(T11Pressure, SnapshotsAndRestoresWait) {
  Game game;
  const imp_api* api = game.api;
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(game.live(true));
  ASSERT_WORKS(api->brain_set_learning(game.brain, 0));
  const Hash kept = game.hash();
  std::uint64_t snapshot = 0;
  ASSERT_WORKS(api->brain_snapshot(game.brain, &snapshot));
  ASSERT_WORKS(api->context_drain(game.context, 60000));
  ASSERT_WORKS(api->brain_set_learning(game.brain, 1));
  ASSERT_NO_FATAL_FAILURE(game.learn_until(12));
  budgeted.used = kTooMuch;
  ASSERT_NO_FATAL_FAILURE(game.live_until([&] { return game.brain_stats().evicted_bytes > 0; }));
  ASSERT_WORKS(api->brain_set_learning(game.brain, 0));
  ASSERT_WORKS(api->brain_restore(game.brain, snapshot));
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
  EXPECT_EQ(api->context_drain(game.context, 1000), IMP_NOT_READY) << "it waits for memory";
  budgeted.used = kAmple;
  ASSERT_NO_FATAL_FAILURE(game.live_until([&] { return game.brain_stats().evicted_bytes == 0; }));
  ASSERT_NO_FATAL_FAILURE(game.live(false));
  EXPECT_TRUE(game.hash() == kept) << "the restore was forgotten";
}

// A brain and its context may be destroyed at any moment of leaving and returning.
TEST(T11Pressure, DestroyedOnTheWay) {
  for (int frames = 0; frames < 12; ++frames) {
    SCOPED_TRACE("destroyed " + std::to_string(frames) + " frames later");
    Game game;
    const imp_api* api = game.api;
    for (int i = 0; i < 6; ++i) ASSERT_NO_FATAL_FAILURE(game.live(true));
    imp_limits less = game.limits;
    less.memory_cap_bytes = 1;
    ASSERT_WORKS(api->context_set_limits(game.context, &less));
    for (int i = 0; i < frames % 6; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
    if (frames >= 6) {
      ASSERT_NO_FATAL_FAILURE(game.live_until([&] { return game.brain_stats().evicted_bytes > 0; }));
      ASSERT_WORKS(api->context_set_limits(game.context, &game.limits));
      for (int i = 0; i < frames % 6; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
    }
    if (frames % 2 == 0) ASSERT_WORKS(api->brain_destroy(game.brain));
  }
}

// Calls between frames find a brain on the device or away, never in between.
TEST(T11Pressure, CallsBetweenFramesMeetEveryPhase) {
  const std::string path = testing::TempDir() + "imprint-pressure-phase.brain";
  Game game;
  const imp_api* api = game.api;
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(game.live(true));
  ASSERT_WORKS(api->brain_set_learning(game.brain, 0));
  const Hash start = game.hash();
  ASSERT_NO_FATAL_FAILURE(game.save(path));
  imp_limits less = game.limits;
  less.memory_cap_bytes = 1;
  for (int round = 0; round < 16; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_WORKS(api->context_set_limits(game.context, round % 2 == 0 ? &less : &game.limits));
    for (int i = 0; i <= round / 2; ++i) ASSERT_NO_FATAL_FAILURE(game.live(false));
    const bool room = round % 2 == 1;
    if (round % 3 == 0 && room) ASSERT_WORKS(api->brain_load(game.brain, path.c_str()));
    if (round % 3 == 1) ASSERT_WORKS(api->context_warmup(game.context, nullptr, nullptr));
    ASSERT_WORKS(api->context_drain(game.context, 60000));
    Hash now;
    const imp_result asked =
        api->tools->brain_hash(game.brain, &now.low, &now.high);  // needs memory of its own
    if (!room && asked == IMP_ERROR_OUT_OF_DEVICE_MEMORY) continue;
    ASSERT_WORKS(asked);
    EXPECT_TRUE(now == start);
  }
}

}  // namespace
}  // namespace imprint::bridge

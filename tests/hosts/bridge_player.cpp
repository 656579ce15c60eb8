#include "tests/hosts/bridge_player.h"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace imprint::bridge {
namespace {

struct Steady {
  std::uint64_t compiles = 0, allocations = 0, waits = 0;
  explicit Steady(const vk::Counters& counters)
      : compiles(counters.frame_compiles),
        allocations(counters.frame_allocations),
        waits(counters.frame_waits) {}
  bool operator==(const Steady&) const = default;
};

// Declared features are used; undeclared ones have no functions to call.
void check_bonuses(vk::Device& device, const HostProfile& profile) {
  if (!profile.everything) return;
  const auto has = [&](const char* name) {
    return !profile.without || std::strcmp(profile.without, name) != 0;
  };
  EXPECT_EQ(device.functions().vkWaitSemaphores != nullptr, has("timelineSemaphore"));
  EXPECT_EQ(device.functions().vkCmdPipelineBarrier2 != nullptr, has("synchronization2"));
  EXPECT_EQ(device.functions().vkQueueSubmit2 != nullptr, has("synchronization2"));
  EXPECT_EQ(device.functions().vkResetQueryPool != nullptr, has("hostQueryReset"));
  EXPECT_EQ(device.capabilities().pipeline_creation_cache_control, has("pipelineCreationCacheControl"));
  EXPECT_EQ(device.capabilities().max_subgroup_size > 0, has("subgroupSizeControl"));
}

}  // namespace

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::record:
      return "record";
    case Mode::lock:
      return "lock";
    case Mode::submit:
      return "submit";
    case Mode::single_thread:
      return "single_thread";
    case Mode::exclusive:
      return "exclusive";
  }
  return "";
}

Result<std::unique_ptr<Context>> adopt(PlainHost& host, Mode mode, const Budget& budget) {
  ContextDescription description;
  description.device = host.describe();
  description.budget = budget;
  description.queue.family = host.family();
  if (mode != Mode::record) description.queue.queue = host.queue();
  description.queue.user = &host;
  description.queue.exclusive = mode == Mode::exclusive;
  const bool alone = mode == Mode::exclusive && host.second_queue();
  if (alone) {
    description.queue.queue = host.second_queue();
    description.queue.family = host.second_family();
  } else if (mode == Mode::lock || mode == Mode::exclusive) {  // with one queue too: the thread still runs
    description.queue.lock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().lock(); };
    description.queue.unlock = [](void* user, VkQueue) { static_cast<PlainHost*>(user)->mutex().unlock(); };
  } else if (mode == Mode::submit) {
    description.queue.submit = [](void* user, VkQueue, std::uint32_t count, const VkSubmitInfo* submits,
                                  VkFence fence) {
      return static_cast<PlainHost*>(user)->submit(count, submits, fence);
    };
  }
  description.queue.single_thread = mode == Mode::single_thread;
  return Context::adopt(description);
}

// Plays the game and returns what was learned.
std::vector<float> play(const HostProfile& profile, Mode mode, const Budget& budget) {
  HostProfile wanted = profile;
  wanted.second_queue = mode == Mode::exclusive;
  PlainHost host(wanted);
  if (!host.ok()) return {};
  std::vector<float> weights;
  {
    auto adopted = adopt(host, mode, budget);
    EXPECT_TRUE(adopted) << adopted.error().message;
    if (!adopted) return {};
    Context& context = **adopted;
    check_bonuses(context.device(), profile);
    Player player(context, mode);
    if (mode == Mode::lock || mode == Mode::submit || mode == Mode::exclusive) host.start_busy_thread();
    // The host's fences do not pace an exclusive queue: the game stays two frames ahead by itself.
    std::array<vk::Ticket, 2> paces;
    const auto pace = [&](std::uint64_t frame) {
      if (mode != Mode::exclusive) return;
      while (!context.device().is_complete(paces[frame % 2]))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    };
    std::optional<Steady> before;
    std::uint64_t submits = 0;
    for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
      if (frame == kWarmUp) {
        before.emplace(context.device().counters());
        submits = context.device().counters().submits;
      }
      const VkCommandBuffer commands = host.begin_frame(frame);
      pace(frame);
      player.frame(frame, host.safe_frame(), commands);
      paces[frame % 2] = context.device().last_ticket();
      host.end_frame();
    }
    EXPECT_TRUE(before == Steady(context.device().counters())) << "a frame compiled, allocated or waited";
    EXPECT_EQ(context.device().counters().waits, 0u);
    if (mode == Mode::record) {
      EXPECT_EQ(context.device().counters().submits, 0u);
    } else if (budget.max_slice_us == 0 && mode != Mode::exclusive) {
      EXPECT_EQ(context.device().counters().submits - submits, kFrames - kWarmUp + 1)
          << "one submission per frame";
    }
    host.finish_frames();
    if (context.queue()) {
      const Result<> drained = context.drain(60'000'000'000);
      EXPECT_TRUE(drained) << drained.error().message;
    }
    const VkCommandBuffer commands = host.begin_frame(kFrames + 1);
    player.frame(kFrames + 1, host.safe_frame(), commands);
    host.end_frame();
    host.finish_frames();
    EXPECT_EQ(player.steps, static_cast<int>(kFrames / 2 - 1));
    weights = player.weights;
    host.stop_busy_thread();
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
  return weights;
}

const std::vector<float>& expected() {
  static const std::vector<float> weights = play(kEverything, Mode::single_thread, {0, 0});
  return weights;
}

}  // namespace imprint::bridge

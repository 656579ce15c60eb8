// A host that records tells its frames in flight by safe_frame: a latency that is not set follows from them,
// and one that is too short is said once, with the number to set.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;
using namespace imprint::game::test;

constexpr std::uint64_t kLatencyFrames = 120;

class LatencyTest : public ::testing::Test {
 protected:
  // Warnings and errors go to `log`.
  imp_host callbacks() {
    imp_host host = imp_host_init();
    host.user = &log;
    host.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<std::vector<std::string>*>(user)->emplace_back(text);
    };
    return host;
  }
  // behind: frames from a frame to its safe frame. latency 0: the brain's default.
  void live(std::uint32_t latency, std::uint64_t behind) {
    PlainHost host({"rich", VK_API_VERSION_1_3, true});
    ASSERT_TRUE(host.ok());
    Side side{host};
    Context context = std::move(
        *Context::create(Library(imp_get_api), info_of(host.describe(), side, Way::record), callbacks()));
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {3};
    desc.action_latency_frames = latency;
    Made<Brain> brain = context.create_brain(desc);
    ASSERT_TRUE(brain) << brain.outcome.message();
    Made<Agent> agent = brain->create_agent();
    ASSERT_TRUE(agent) << agent.outcome.message();
    ASSERT_WORKS(context.warmup());
    for (std::uint64_t frame = 1; frame <= kLatencyFrames; ++frame) {
      const VkCommandBuffer commands = host.begin_frame(frame);
      const std::uint64_t safe = frame > behind ? frame - behind : 0;
      ASSERT_LE(safe, host.safe_frame()) << "the host knows better";
      ASSERT_WORKS(context.frame_begin(frame, static_cast<double>(frame) / 60, safe));
      const Made<Action> action = agent->act();
      fresh += action.outcome.ready() && action.value.decision > newest;
      if (action.outcome.ready()) newest = action.value.decision;
      ASSERT_WORKS(agent->observe(std::vector<float>{1, 2}));
      ASSERT_WORKS(context.record(commands).outcome);
      ASSERT_WORKS(context.frame_end());
      host.end_frame();
    }
    late = brain->stats().value.late_actions;
    host.finish_frames();
    ASSERT_WORKS(context.frame_begin(kLatencyFrames + 1, 10.0, host.safe_frame()));
    ASSERT_WORKS(context.frame_end());
    ASSERT_WORKS(context.destroy());
    agent->release();
    brain->release();
  }

  std::vector<std::string> log;
  std::uint64_t fresh = 0, newest = 0;  // decisions that were fetched
  std::uint32_t late = 0;
};

TEST_F(LatencyTest, FollowsFromTheHostsFramesInFlightIfNotSet) {
  for (const std::uint64_t behind : {3u, 4u}) {
    fresh = newest = 0;
    ASSERT_NO_FATAL_FAILURE(live(0, behind));
    EXPECT_EQ(late, 0u) << behind;
    EXPECT_GE(fresh, kLatencyFrames - 8) << behind;
  }
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(LatencyTest, ThatIsTooShortIsSaidOnceWithTheNumberToSet) {
  ASSERT_NO_FATAL_FAILURE(live(2, 3));
  EXPECT_GT(late, 100u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("action_latency_frames: found 2, expected at least 3"));
  EXPECT_THAT(log[0], HasSubstr("Set it to 3."));
}

// However fast the GPU is: the answer waits for the frame in which a slow one would have it.
TEST_F(LatencyTest, FollowsFromTheSafeFrameOfAHostThatSubmits) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  Context context = std::move(
      *Context::create(Library(imp_get_api), info_of(host.describe(), side, Way::submit), callbacks()));
  Brain brain = std::move(*context.create_brain(BrainDesc::of(NoLearner(), 2, {3})));
  Agent agent = std::move(*brain.create_agent());
  ASSERT_WORKS(context.warmup());
  Frames clock(3);
  std::vector<std::uint64_t> answered;
  for (std::uint64_t frame = 1; frame <= 30; ++frame) {
    Frame scope(context, clock.next(1.0 / 60));
    if (scope.act(agent).is_new) answered.push_back(frame);
    if (frame % 10 == 0) ASSERT_WORKS(agent.observe(std::vector<float>{1, 2}));
    scope.submit();
    ASSERT_WORKS(scope.end());
    ASSERT_WORKS(context.drain(60'000));
  }
  EXPECT_EQ(answered, (std::vector<std::uint64_t>{13, 23}));
  EXPECT_EQ(brain.stats().value.late_actions, 0u);
  EXPECT_TRUE(log.empty()) << log.front();
}

// A GPU that does nothing for long, and a loop that goes on.
TEST_F(LatencyTest, AnAnswerThatDoesNotComeIsSaidOnce) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  create.pNext = &type;
  VkSemaphore gate = VK_NULL_HANDLE;
  ASSERT_EQ(host.vk().vkCreateSemaphore(host.device(), &create, nullptr, &gate), VK_SUCCESS);
  {
    Context context = std::move(
        *Context::create(Library(imp_get_api), info_of(host.describe(), side, Way::submit), callbacks()));
    Brain brain = std::move(*context.create_brain(BrainDesc::of(NoLearner(), 2, {3})));
    Agent agent = std::move(*brain.create_agent());
    ASSERT_WORKS(context.warmup());
    imp_vk_semaphore wait{};
    std::memcpy(&wait.semaphore, &gate, sizeof gate);
    wait.value = 1;
    for (std::uint64_t frame = 1; frame <= 80; ++frame) {
      ASSERT_WORKS(context.frame_begin(frame, static_cast<double>(frame) / 60));
      ASSERT_WORKS(agent.observe(std::vector<float>{1, 2}));
      ASSERT_WORKS(frame == 1 ? context.submit({&wait, 1}, {}) : context.submit());
      ASSERT_WORKS(context.frame_end());
      EXPECT_EQ(log.size(), frame <= 60 ? 0u : 1u) << frame;
    }
    VkSemaphoreSignalInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    signal.semaphore = gate;
    signal.value = 1;
    ASSERT_EQ(host.vk().vkSignalSemaphore(host.device(), &signal), VK_SUCCESS);
    EXPECT_EQ(brain.stats().value.alarms, std::uint64_t{IMP_ALARM_OVERDUE_ANSWER});
    ASSERT_WORKS(context.drain(60'000));
  }
  host.vk().vkDestroySemaphore(host.device(), gate, nullptr);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("agent_act: found no answer 60 frames after the question"));
  EXPECT_THAT(log[0], HasSubstr("context_quiesce and context_resume"));
}

}  // namespace

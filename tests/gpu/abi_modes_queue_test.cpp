// T3, T6, T7, T8. The host's and Imprint's queues: threads, command buffers, semaphores, idle queues, and
// work without a fence.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

TEST(T6Modes, TheSubmitThreadBelongsToImprint) {
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

// State of a command buffer that Vulkan does not report: a wrong state is an error, and an empty recording
// works.
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

// A queue of the host waits for Imprint's submission, by a semaphore and a value.
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
      EXPECT_GT(ours.value.value, before) << "every submission has its own value";
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

// A host that waits for its own device to be idle, as on a resize, while Imprint works.
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
      host.wait_idle();  // does not take the queue's lock
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

// Without fence and timeline only the host's frames report completion, so waiting is not possible.
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
  const Outcome unhashed = brain->hash().outcome;
  EXPECT_EQ(unhashed.code(), Code::unsupported);
  EXPECT_EQ(std::string(unhashed.message()).find("brain_hash: "), 0u) << unhashed.message();
  EXPECT_EQ(context->destroy().code(), Code::wrong_state) << "what was submitted may still run";
  host.finish_frames();
  ASSERT_WORKS(context->frame_begin(2, 0, 1));
  ASSERT_WORKS(context->frame_end());
  ASSERT_WORKS(context->destroy());
  brain->release();
}

}  // namespace

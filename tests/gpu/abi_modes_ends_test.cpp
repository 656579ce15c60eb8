// T6, T8. Brains, contexts and hosts that end early, while submitted work may still run.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_modes.h"
#include "tests/hosts/assert_works.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// Callbacks that keep warnings and errors in side.log.
imp_host listening(Side& side) {
  imp_host host = imp_host_init();
  host.user = &side;
  host.log = [](void* user, imp_log_level level, const char* text) {
    if (level >= IMP_LOG_WARNING) static_cast<Side*>(user)->log.emplace_back(text);
  };
  return host;
}

// A brain may be destroyed while its save waits for a submission that the host refused.
TEST(T6Modes, ARefusedSaveGoesWithItsBrain) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  const imp_host lent = listening(side);
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

// Recorded work that may still run keeps the context alive, and the error names that work.
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
  const Outcome too_much = context->frame_begin(4, 0, 4);  // of a frame that the host has not recorded
  EXPECT_EQ(too_much.code(), Code::invalid_argument);
  EXPECT_NE(std::string(too_much.message()).find("safe_frame: found 4 in frame 4"), std::string::npos)
      << too_much.message();
  ASSERT_WORKS(context->frame_begin(4, 0, 3));
  ASSERT_WORKS(context->frame_end());
  EXPECT_TRUE(context->destroy());
}

// One call says that the device is idle, where a frame that reports it will never come.
TEST(T8Modes, AnIdleDeviceCompletesWhatWasRecorded) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  for (const bool with_destructor : {false, true}) {
    Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::record));
    ASSERT_TRUE(context) << context.outcome.message();
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {3};
    Made<Brain> brain = context->create_brain(desc);
    Made<Agent> agent = brain->create_agent();
    ASSERT_WORKS(context->warmup());
    const float seen[] = {1, 2};
    for (std::uint64_t frame = 0; frame < 3; ++frame) {  // the first frame is 0
      const VkCommandBuffer commands = host.begin_frame(frame);
      ASSERT_WORKS(context->frame_begin(frame, 0));
      ASSERT_WORKS(agent->observe(seen));
      EXPECT_EQ(context->device_idle().code(), Code::wrong_state) << "a frame is open";
      ASSERT_WORKS(context->record(commands).outcome);
      ASSERT_WORKS(context->frame_end());
      host.end_frame();
      if (frame == 0) {
        EXPECT_EQ(context->destroy().code(), Code::wrong_state) << "frame 0 runs too";
      }
    }
    int waits = 0;
    auto wait = [&] {
      ++waits;
      host.wait_idle();
    };
    if (with_destructor) {
      context->wait_idle_with(wait);
      context->reset();
      EXPECT_EQ(waits, 1);
      continue;
    }
    host.wait_idle();
    ASSERT_WORKS(context->device_idle());
    ASSERT_WORKS(context->frame_begin(3, 0));
    EXPECT_TRUE(agent->act()) << "the answer has arrived";
    ASSERT_WORKS(context->frame_end());
    ASSERT_WORKS(context->destroy());
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

// Without a function to wait with, a destructor leaves the context alone, and the log says so.
TEST(T8Modes, ADestructorThatCannotWaitSaysSo) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  Side side{host};
  const imprint::vk::DeviceDescription device = host.describe();
  const imp_host lent = listening(side);
  Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::record), lent);
  ASSERT_TRUE(context) << context.outcome.message();
  const VkCommandBuffer commands = host.begin_frame(1);
  ASSERT_WORKS(context->frame_begin(1, 0));
  ASSERT_WORKS(context->record(commands).outcome);
  ASSERT_WORKS(context->frame_end());
  host.end_frame();
  const imp_api& api = *context->api();
  const imp_context left = context->handle();
  context->reset();
  EXPECT_FALSE(*context);
  ASSERT_EQ(side.log.size(), 1u);
  EXPECT_NE(side.log[0].find("context_destroy"), std::string::npos) << side.log[0];
  EXPECT_NE(side.log[0].find("context_device_idle"), std::string::npos) << side.log[0];
  host.wait_idle();
  EXPECT_EQ(api.vulkan->context_device_idle(left), IMP_OK) << api.last_error();
  EXPECT_EQ(api.context_destroy(left), IMP_OK) << api.last_error();
}

// A host that forgets a part of the frame gets no answer, and one warning that says why.
TEST(T8Modes, AForgottenPartOfTheFrameIsSaidOnce) {
  PlainHost host({"rich", VK_API_VERSION_1_3, true});
  ASSERT_TRUE(host.ok());
  const imprint::vk::DeviceDescription device = host.describe();
  for (const bool records : {true, false}) {
    Side side{host};
    imp_host lent = imp_host_init();
    lent.user = &side;
    lent.log = [](void* user, imp_log_level level, const char* text) {
      if (level >= IMP_LOG_WARNING) static_cast<Side*>(user)->log.emplace_back(text);
    };
    Made<Context> context = Context::create(Library(imp_get_api), info_of(device, side, Way::record), lent);
    ASSERT_TRUE(context) << context.outcome.message();
    BrainDesc desc;
    desc.observation_count = 2;
    desc.branch_sizes = {3};
    Made<Brain> brain = context->create_brain(desc);
    Made<Agent> agent = brain->create_agent();
    ASSERT_WORKS(context->warmup());
    const float seen[] = {1, 2};
    for (std::uint64_t frame = 1; frame <= 150; ++frame) {
      const VkCommandBuffer commands = host.begin_frame(frame);
      ASSERT_WORKS(context->frame_begin(frame, 0));
      ASSERT_WORKS(agent->observe(seen));
      if (records) ASSERT_WORKS(context->record(commands).outcome);
      ASSERT_WORKS(context->frame_end());
      host.end_frame();
    }
    ASSERT_EQ(side.log.size(), 1u);
    EXPECT_NE(side.log[0].find(records ? "safe_frame: found 0 in 60 recorded frames"
                                       : "60 frames without frame_submit or frame_record"),
              std::string::npos)
        << side.log[0];
    host.wait_idle();
    ASSERT_WORKS(context->device_idle());
    ASSERT_WORKS(context->destroy());
  }
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
  desc.hidden_sizes = {16};  // a software device compiles for most of this test
  FeedbackOptions options;
  options.learn_period_frames = 2;
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  Made<Agent> agent = brain->create_agent();
  bool good = context->warmup().ok();
  const float seen[] = {1, 2};
  Demonstration shown;
  shown.observation = seen;
  shown.branches = {0};
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

// Objects destroyed with their context are counted and named in the log. Nothing is logged if the game
// destroyed them all.
TEST(T8Modes, LeftoverObjectsAreCountedAndNamed) {
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
        leaves ? "context_destroy: destroyed with it: 2 brains ('cat', 'dog'), 1 tensor ('view') and 3 agents"
               : "");
  }
  EXPECT_EQ(host.messages(), 0u) << host.first_message();
}

}  // namespace

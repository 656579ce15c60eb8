// The C++ API over the table: the values that its descriptors pass to the library, and ownership of handles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// Every value set in a descriptor of the C++ API reaches the library.
TEST(Coat, DescriptorsEqualTheirCForms) {
  const std::string name = device_name();
  StandaloneDesc device;
  device.device = name.empty() ? nullptr : name.c_str();
  struct Services {
    void log(LogLevel, const char*) { ++lines; }
    int lines = 0;
  } services;
  Limits limits;
  limits.gpu_us_per_frame = 700;
  Made<Context> context =
      Context::create_standalone(Library(imp_get_api), device, HostDesc(services), limits);
  ASSERT_TRUE(context) << context.outcome.message();
  const float scale[] = {1, 2, 3, 4};
  BrainDesc desc;
  desc.observation_count = 4;
  desc.observation_scale = scale;
  desc.branch_sizes = {3};
  desc.hidden_sizes = {16, 8};
  desc.goal_count = 2;
  PpoOptions options;
  options.rollout_steps = 96;
  desc.learner = options;
  Made<Brain> brain = context->create_brain(desc);
  EXPECT_EQ(brain.outcome.code(), Code::invalid_argument);
  EXPECT_THAT(brain.outcome.message(), HasSubstr("divisor of rollout_steps"));
  options.batch_size = 32;
  desc.learner = options;
  brain = context->create_brain(desc);
  ASSERT_TRUE(brain) << brain.outcome.message();
  const Made<imp_brain_info> info = brain->info();
  EXPECT_EQ(info.value.parameter_count, (4u + 1) * 16 + (16u + 1) * 8 + (8u + 1) * 6);
  desc.observation_scale = std::span(scale).first(3);
  EXPECT_THAT(context->create_brain(desc).outcome.message(), HasSubstr("observation_scale"));
  desc.observation_scale = {};
  desc.branch_sizes = {2, 2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_THAT(context->create_brain(desc).outcome.message(), HasSubstr("branch_count"));
  desc.branch_sizes = {3};
  desc.learner = FeedbackOptions();
  Made<Brain> taught = context->create_brain(desc);
  Made<Agent> agent = taught->create_agent();
  ASSERT_TRUE(agent) << agent.outcome.message();
  ASSERT_TRUE(context->warmup());
  ASSERT_TRUE(context->frame_begin(1, 0.1));
  Demonstration shown;
  shown.observation = scale;
  shown.branches = {2};
  shown.goal = 1;
  EXPECT_TRUE(agent->demonstrate(shown)) << agent->demonstrate(shown).message();
  shown.branches = {3};
  EXPECT_EQ(agent->demonstrate(shown).code(), Code::invalid_argument);
  ASSERT_TRUE(context->submit());
  ASSERT_TRUE(context->frame_end());
  context->reset();
  EXPECT_GT(services.lines, 0) << "names of objects destroyed with the context";
}

TEST(Coat, OwnsAndMoves) {
  const std::string name = device_name();
  imp_standalone_info device = imp_standalone_info_init();
  device.device = name.empty() ? nullptr : name.c_str();
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device);
  ASSERT_TRUE(context) << context.outcome.message();
  Made<Brain> brain = context->create_brain(small_desc());
  ASSERT_TRUE(brain) << brain.outcome.message();
  Made<Agent> agent = brain->create_agent();
  ASSERT_TRUE(agent);
  EXPECT_FALSE(brain->create_agent(9));
  ASSERT_TRUE(context->warmup());
  Agent moved = std::move(*agent);
  EXPECT_FALSE(*agent);
  ASSERT_TRUE(context->frame_begin(1, 0.1));
  const float seen[4] = {1, 0, 0, 0};
  ASSERT_TRUE(moved.observe(seen));
  EXPECT_EQ(moved.act().outcome.code(), Code::not_ready);
  ASSERT_TRUE(context->submit());
  ASSERT_TRUE(context->frame_end());
  ASSERT_TRUE(context->drain(10000));
  for (std::uint64_t frame = 2; frame <= 3; ++frame) {
    ASSERT_TRUE(context->frame_begin(frame, 0.1 * static_cast<double>(frame)));
    const Made<Action> action = moved.act();
    EXPECT_EQ(action.outcome.ready(), frame == 3);
    ASSERT_TRUE(context->submit());
    ASSERT_TRUE(context->frame_end());
  }
  const Made<BrainHash> hash = brain->hash(), again = brain->hash();
  ASSERT_TRUE(hash.outcome.ready() && again.outcome.ready());
  EXPECT_EQ(hash.value, again.value);
  Context taken = std::move(*context);
  EXPECT_TRUE(taken.destroy());
  EXPECT_FALSE(taken);
  EXPECT_EQ(moved.set_goal(0).code(), Code::invalid_handle);
  EXPECT_FALSE(Context::create_standalone(Library(nullptr), device));
}

}  // namespace

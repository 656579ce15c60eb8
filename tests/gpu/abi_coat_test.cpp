// The C++ API over the table: the values that its descriptors pass to the library, and ownership of handles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  options.batch_size = 64;
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

// A game that checks only its last create learns which one failed first.
TEST(Coat, AZeroHandleNamesTheFailureThatLeftIt) {
  StandaloneDesc device;
  device.device = "cpu";
  Context context = Context::create_standalone(Library(imp_get_api), device).value;
  Brain brain = context.create_brain(BrainDesc::of(DqnOptions(), 2, {3, 3})).value;
  const Made<Agent> agent = brain.create_agent();
  EXPECT_EQ(agent.outcome.code(), Code::invalid_handle);
  EXPECT_THAT(agent.outcome.message(),
              HasSubstr("agent_create: the brain handle is zero. The failure before: "
                        "brain_create: actions: found branch_count 2"));
  device.device = "no such device";
  context = Context::create_standalone(Library(imp_get_api), device).value;
  brain = context.create_brain(BrainDesc::of(DqnOptions(), 2, {3})).value;
  const Made<Agent> second = brain.create_agent();
  EXPECT_THAT(second.outcome.message(),
              HasSubstr("agent_create: the brain handle is zero. The failure before: "
                        "context_create_standalone: "));
}

// A creature dies during a frame, before and after the frame's work is issued.
TEST(Coat, AnAgentMayEndInAFrame) {
  imp_standalone_info device = imp_standalone_info_init();
  const std::string name = device_name();
  device.device = name.c_str();
  Made<Context> context = Context::create_standalone(Library(imp_get_api), device);
  ASSERT_TRUE(context) << context.outcome.message();
  BrainDesc desc;
  desc.observation_count = 3;
  desc.branch_sizes = {3};
  desc.agents_per_brain = 2;
  desc.learner = FeedbackOptions();
  Made<Brain> brain = context->create_brain(desc);
  Made<std::vector<Agent>> crowd = brain->create_agents(2);
  ASSERT_TRUE(crowd) << crowd.outcome.message();
  ASSERT_TRUE(context->warmup());
  const float seen[] = {1, 0, -1};
  std::uint64_t number = 0;
  for (const bool before : {true, false}) {
    for (int round = 0; round < 4; ++round) {  // the slot is free again, and no other agent gets the answer
      ++number;
      ASSERT_TRUE(context->frame_begin(number, static_cast<double>(number) / 60));
      for (Agent& agent : *crowd) ASSERT_TRUE(agent.observe(seen));
      if (before) crowd->pop_back();
      ASSERT_TRUE(context->submit());
      if (!before) crowd->pop_back();
      ASSERT_TRUE(context->frame_end());
      Made<Agent> next = brain->create_agent();
      ASSERT_TRUE(next) << next.outcome.message();
      crowd->push_back(std::move(*next));
      ++number;
      ASSERT_TRUE(context->frame_begin(number, static_cast<double>(number) / 60));
      EXPECT_EQ(crowd->back().act().outcome.code(), Code::not_found);
      ASSERT_TRUE(context->submit());
      ASSERT_TRUE(context->frame_end());
    }
  }
  EXPECT_EQ(brain->create_agent().outcome.code(), Code::unsupported) << "both slots are taken";
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

TEST(Coat, AFrameClockTellsWhatAHostOfSoManyFramesInFlightKnows) {
  Frames clock(2);
  EXPECT_EQ(clock.next(0.5).safe_frame, 0u);
  EXPECT_EQ(clock.next(0.5).safe_frame, 0u);
  const imp_frame_info third = clock.next(0);
  EXPECT_EQ(third.frame, 3u);
  EXPECT_EQ(third.safe_frame, 1u);
  EXPECT_EQ(third.time_s, 1.0) << "the game paused";
  const imp_frame_info idle = clock.idle();
  EXPECT_EQ(idle.frame, 4u);
  EXPECT_EQ(idle.safe_frame, 3u);
  EXPECT_EQ(clock.next(0).safe_frame, 3u) << "it never falls";
  EXPECT_EQ(clock.next(0).safe_frame, 4u);
  EXPECT_EQ(clock.number(), 6u);
  Frames told(0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(told.next(0).safe_frame, 0u) << "the host tells it";
  told.completed(4);
  told.completed(3);
  EXPECT_EQ(told.next(0).safe_frame, 4u);
}

Made<Context> standalone_context() {
  const std::string name = device_name();
  StandaloneDesc device;
  device.device = name.empty() ? nullptr : name.c_str();
  return Context::create_standalone(Library(imp_get_api), device);
}

// Observe, act, reward, end: the loop of all pages and samples.
TEST(Coat, TheLoopOfRewardsAsksOnceForEachDecisionAndCarriesItOutOnce) {
  Made<Context> context = standalone_context();
  ASSERT_TRUE(context) << context.outcome.message();
  Made<Brain> brain = context->create_brain(BrainDesc::of(DqnOptions(), 2, {4}, 3));
  Made<std::vector<Agent>> agents = brain->create_agents(3);
  ASSERT_TRUE(agents) << agents.outcome.message();
  EXPECT_EQ(agents->size(), 3u);
  EXPECT_FALSE(brain->create_agents(1)) << "all are taken";
  EXPECT_TRUE(brain->create_agents(1).value.empty());
  ASSERT_TRUE(context->warmup());
  Frames clock(2);
  const float seen[2] = {1, 0};
  std::uint64_t carried_out = 0, asked = 0, episode = 0;
  for (int i = 0; i < 60; ++i) {
    Frame frame(*context, clock.next(1.0 / 60));
    Agent& agent = (*agents)[0];
    const Action action = frame.act(agent);
    if (action.is_new) {
      EXPECT_EQ(action.choices().size(), 1u);
      ++carried_out;
      frame.keep(agent.reward(1));
      if (carried_out % 5 == 0) frame.keep(agent.end_episode(EpisodeEnd::terminated)), ++episode;
      EXPECT_EQ(frame.act(agent).is_new, 0u) << "a repetition";
    }
    if (action.wants_observation) frame.keep(agent.observe(seen)), ++asked;
    frame.submit();
    const Outcome outcome = frame.end();
    ASSERT_TRUE(outcome) << outcome.message();
    ASSERT_TRUE(context->drain(10000));
  }
  EXPECT_EQ(carried_out, 29u)
      << "an answer comes two frames after its question, and the next is asked at once";
  EXPECT_EQ(asked, carried_out + 1);
  EXPECT_EQ(episode, 5u);
  EXPECT_EQ(brain->stats().value.episodes, episode);
  EXPECT_TRUE(context->close());
  EXPECT_FALSE(*context);
}

TEST(Coat, AFrameEndsWhateverHappensAndKeepsItsFirstFailure) {
  Made<Context> context = standalone_context();
  ASSERT_TRUE(context) << context.outcome.message();
  Made<Brain> brain = context->create_brain(BrainDesc::of(FeedbackOptions(), 2, {4}));
  Made<Agent> agent = brain->create_agent();
  ASSERT_TRUE(agent && context->warmup());
  Frames clock(2);
  const float few[1] = {};
  {
    Frame frame(*context, clock.next(0));
    EXPECT_FALSE(frame.keep(agent->observe(few)));
    EXPECT_FALSE(frame.keep(agent->set_goal(77)));
    EXPECT_TRUE(frame.submit()) << "later calls are made";
    const Outcome outcome = frame.end();
    EXPECT_EQ(outcome.code(), Code::invalid_argument);
    EXPECT_THAT(outcome.message(), HasSubstr("agent_observe")) << "not the second failure";
  }
  { Frame unfinished(*context, clock.next(0)); }
  Frame next(*context, clock.next(0));
  const Outcome ended = next.end();
  EXPECT_TRUE(ended) << "the frame before was ended";
  EXPECT_STREQ(ended.name(), "IMP_OK");
  Frame stale(*context, imp_frame_info_init());
  EXPECT_THAT(stale.end().message(), HasSubstr("frame"));
  EXPECT_TRUE(context->close());
}

// Destruction cannot return a code: the log says that the context stays, and why.
TEST(Coat, AContextThatEndsInAFrameStaysAndSaysSo) {
  struct Services {
    void log(LogLevel level, const char* line) {
      if (level == LogLevel::error) errors.emplace_back(line);
    }
    std::vector<std::string> errors;
  } services;
  const std::string name = device_name();
  StandaloneDesc device;
  device.device = name.empty() ? nullptr : name.c_str();
  imp_context left{};
  {
    Made<Context> context =
        Context::create_standalone(Library(imp_get_api), device, HostDesc(services), Limits());
    ASSERT_TRUE(context) << context.outcome.message();
    left = context->handle();
    ASSERT_TRUE(context->frame_begin(1, 0));
  }
  EXPECT_THAT(services.errors, ::testing::ElementsAre(HasSubstr("context_destroy: a frame is open")));
  EXPECT_WORKS(api()->frame_end(left));
  EXPECT_WORKS(api()->context_destroy(left));
}

}  // namespace

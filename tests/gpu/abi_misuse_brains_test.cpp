// Brains and agents that the table refuses to create or change.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

// The text names the call and the remedy, however long the brain's name is.
TEST_F(Misuse, LongNamesKeepTheRestOfTheMessage) {
  const std::string name(1 << 16, 'n');
  imp_brain_desc desc = small_desc();
  desc.name = name.c_str();
  imp_brain made{};
  EXPECT_WORKS(api()->brain_create(context, &desc, &made));
  imp_agent cold{};
  EXPECT_WORKS(api()->agent_create(made, 0, &cold));
  begin();
  const float seen[4] = {};
  EXPECT_FAILS(api()->agent_observe(cold, seen, 4), IMP_ERROR_WRONG_STATE, "agent_observe: brain 'nnn");
  EXPECT_THAT(api()->last_error(), HasSubstr("Call context_warmup before the first frame"));
  end();
  EXPECT_WORKS(api()->brain_destroy(made));
  EXPECT_FAILS(api()->brain_load(brain, name.c_str()), IMP_ERROR_IO, "brain_load: cannot read 'nnn");
  EXPECT_THAT(api()->last_error(), HasSubstr("too long"));
}

TEST_F(Misuse, Brains) {
  const auto expect = [&](imp_result code, const char* text, auto change) {
    imp_brain_desc desc = small_desc();
    change(desc);
    imp_brain made{};
    EXPECT_FAILS(api()->brain_create(context, &desc, &made), code, text);
    EXPECT_EQ(made.id, 0u);
  };
  const std::uint32_t sizes[] = {3, 1, 3};
  const float scale[] = {1, 2, std::nanf(""), 4};
  expect(IMP_ERROR_INVALID_ARGUMENT, "observation_count", [](imp_brain_desc& d) { d.observation_count = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "observation_scale",
         [&](imp_brain_desc& d) { d.observation_scale = scale; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_sizes", [](imp_brain_desc& d) { d.branch_sizes = nullptr; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_count", [](imp_brain_desc& d) { d.branch_count = 9; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "branch_sizes[1]: found 1, expected 2 to",
         [&](imp_brain_desc& d) { d.branch_count = 2, d.branch_sizes = sizes; });
  expect(IMP_ERROR_UNSUPPORTED, "exactly one branch",
         [&](imp_brain_desc& d) { d.branch_count = 0, d.continuous_count = 2; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "hidden_count", [](imp_brain_desc& d) { d.hidden_count = 17; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "activation",
         [](imp_brain_desc& d) { d.activation = static_cast<imp_activation>(7); });
  expect(IMP_ERROR_INVALID_ARGUMENT, "learner",
         [](imp_brain_desc& d) { d.learner = static_cast<imp_learner>(99), d.header.next = nullptr; });
  const auto expect_options = [&](imp_result code, const char* text, auto change) {
    imp_feedback_options options = small_options();
    expect(code, text, [&](imp_brain_desc& d) { change(d, options), d.header.next = &options; });
  };
  using Desc = imp_brain_desc;
  using Options = imp_feedback_options;
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "learning_rate",
                 [](Desc&, Options& o) { o.learning_rate = std::nanf(""); });
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "exploration", [](Desc&, Options& o) { o.exploration = -1; });
  expect_options(IMP_ERROR_INVALID_ARGUMENT, "credit_width_s",
                 [](Desc&, Options& o) { o.credit_width_s = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "action_latency_frames",
         [](imp_brain_desc& d) { d.action_latency_frames = 65; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "brain_count", [](imp_brain_desc& d) { d.brain_count = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "decision_period_frames",
         [](imp_brain_desc& d) { d.decision_period_frames = 1u << 21; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "decision_period_frames",
         [](imp_brain_desc& d) { d.decision_period_frames = 0; });
  expect(IMP_ERROR_INVALID_ARGUMENT, "UTF-8", [](imp_brain_desc& d) { d.name = "gar\xE7on"; });
  if (device_name() != "cpu")
    expect_options(IMP_ERROR_UNSUPPORTED, "replay_capacity",
                   [](Desc& d, Options& o) { o.replay_capacity = 1u << 20, d.brain_count = 1024; });
  imp_brain made{};
  imp_policy_desc policy = imp_policy_desc_init();
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT,
               "size: found 0 bytes, expected an ONNX file");
  const char text[] = "this is not a model";
  policy.data = text;
  policy.size = sizeof text;
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_CORRUPT_FILE, "");
  policy.name = "\xFF";
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT, "UTF-8");
  policy.data = nullptr;
  EXPECT_FAILS(api()->brain_create_from_onnx(context, &policy, &made), IMP_ERROR_INVALID_ARGUMENT, "null");
}

TEST_F(Misuse, Agents) {
  imp_agent made{};
  EXPECT_FAILS(api()->agent_create(brain, 1, &made), IMP_ERROR_INVALID_ARGUMENT, "brain_index");
  EXPECT_FAILS(api()->agent_create(brain, 0, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_WORKS(api()->agent_create(brain, 0, &made));
  imp_agent third{};
  EXPECT_FAILS(api()->agent_create(brain, 0, &third), IMP_ERROR_UNSUPPORTED,
               "agents: found 2 of agents_per_brain 2, expected fewer");
  EXPECT_FAILS(api()->agent_set_mode(made, static_cast<imp_mode>(9)), IMP_ERROR_INVALID_ARGUMENT, "mode");
  EXPECT_FAILS(api()->agent_set_goal(made, 2), IMP_ERROR_INVALID_ARGUMENT,
               "goal: found 2, expected below 2, imp_brain_desc::goal_count");
  const std::uint8_t none[] = {0, 0, 0};
  EXPECT_FAILS(api()->agent_set_mask(made, none, 3), IMP_ERROR_INVALID_ARGUMENT, "at least one");
  EXPECT_FAILS(api()->agent_set_mask(made, none, 2), IMP_ERROR_INVALID_ARGUMENT,
               "agent_set_mask: count: found 2, expected 3, one flag per choice");
  EXPECT_FAILS(api()->agent_set_mask(made, none, 0), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_WORKS(api()->agent_set_mask(made, nullptr, 0));
  EXPECT_WORKS(api()->agent_destroy(made));
}

}  // namespace

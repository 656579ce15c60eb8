// T10, through the C ABI. Agents observe what a host's compute shader wrote, without the CPU; they learn from
// it to the same bits as from the same numbers passed in, and write their actions where the host's shader
// reads them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/hosts/bridge_shared_brain.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

struct Way {
  imp_learner learner;
  std::uint32_t period;  // imp_brain_desc::decision_period_frames
};

std::string name_of(const Way& way) {
  const char* name = way.learner == IMP_LEARNER_FEEDBACK ? "feedback"
                     : way.learner == IMP_LEARNER_DQN    ? "dqn"
                     : way.learner == IMP_LEARNER_PPO    ? "ppo"
                                                         : "cloning";
  return std::string(name) + (way.period > 1 ? "_in_turns" : "");
}

class T10SharedBrain : public SharedBrain, public testing::WithParamInterface<Way> {};

TEST_P(T10SharedBrain, LearnsInPlaceTheSameAsFromArrays) {
  std::vector<Learned> learned;
  for (const Senses by : {Senses::arrays, Senses::in_place}) {
    open(kEverything, true);
    learned.push_back(play(GetParam().learner, GetParam().period, by));
    close();
  }
  expect_learned(learned[0]);
  expect_learned(learned[1]);
  EXPECT_TRUE(learned[0] == learned[1]) << "the same numbers, in the same order, are the same brain";
  expect_rows(learned[1]);
}

TEST_P(T10SharedBrain, LearnsInTheHostsCommandBuffer) {
  open(kBaseline, false);
  const Learned learned = play(GetParam().learner, GetParam().period, Senses::in_place);
  close();
  expect_learned(learned);
  expect_rows(learned);
}

INSTANTIATE_TEST_SUITE_P(Every, T10SharedBrain,
                         testing::Values(Way{IMP_LEARNER_FEEDBACK, 1}, Way{IMP_LEARNER_CLONING, 1},
                                         Way{IMP_LEARNER_DQN, 1}, Way{IMP_LEARNER_PPO, 1},
                                         Way{IMP_LEARNER_FEEDBACK, 2}, Way{IMP_LEARNER_CLONING, 2},
                                         Way{IMP_LEARNER_DQN, 2}),
                         [](const auto& way) { return name_of(way.param); });

using T10SharedBrainMisuse = SharedBrain;

TEST_F(T10SharedBrainMisuse, IsRefusedByItsField) {
  open(kEverything, true);
  const auto refused = [&](imp_result result, imp_result code, const char* text) {
    EXPECT_EQ(result, code) << api_->last_error();
    EXPECT_THAT(api_->last_error(), HasSubstr(text));
  };
  imp_tensor tensor{};
  imp_vk_buffer declared = declare(rows_);
  imp_tensor_desc desc = game::TensorDesc{.name = "rows", .shape = {kAgents, kStride}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, nullptr, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "buffer: found null");
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, nullptr), IMP_ERROR_INVALID_ARGUMENT,
          "tensor: found null");
  desc.rank = 9;
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.rank: found 9");
  desc = game::TensorDesc{.name = "rows", .shape = {kAgents, 0}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.shape[1]: found 0");
  desc = game::TensorDesc{.name = "rows", .shape = {1u << 20, 1u << 20}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.shape[1]: found 1048576");
  desc = game::TensorDesc{.name = "rows", .shape = {kAgents, kStride + 1}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "buffer.size: found 120, expected at least 144 bytes for tensor 'rows' [6, 6]");
  declared.family_count = 2;
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "buffer.families: found null");
  declared.family_count = 0;
  refused(api_->vulkan->tensor_create_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "wish.buffer, offset, size");

  const imp_tensor rows = import(rows_, {kAgents, kStride}), actions = make({kAgents, kWidth});
  imp_brain brain{};
  game::BrainDesc bad = describe(IMP_LEARNER_CLONING);
  bad.observations = {12345};
  refused(api_->brain_create(context_, c_form(bad), &brain), IMP_ERROR_INVALID_ARGUMENT,
          "desc.observations: found a destroyed or foreign handle");
  bad.observations = rows;
  bad.observation_count = 31;
  refused(api_->brain_create(context_, c_form(bad), &brain), IMP_ERROR_SHAPE_MISMATCH,
          "expected at least 31 numbers, one observation");
  bad = describe(IMP_LEARNER_FEEDBACK);
  bad.actions = actions;
  refused(api_->brain_create(context_, c_form(bad), &brain), IMP_ERROR_SHAPE_MISMATCH, "expected [6, 3]");

  game::BrainDesc good = describe(IMP_LEARNER_CLONING);
  good.observations = rows;
  ASSERT_WORKS(api_->brain_create(context_, c_form(good), &brain));
  imp_brain blind{};
  const game::BrainDesc without = describe(IMP_LEARNER_CLONING);
  ASSERT_WORKS(api_->brain_create(context_, c_form(without), &blind));
  imp_agent agent{}, other{};
  ASSERT_WORKS(api_->agent_create(brain, 0, &agent));
  ASSERT_WORKS(api_->agent_create(blind, 0, &other));
  ASSERT_WORKS(api_->context_warmup(context_, nullptr, nullptr));
  imp_frame_info info = imp_frame_info_init();
  info.frame = 1;
  ASSERT_WORKS(api_->frame_begin(context_, &info));
  refused(api_->vulkan->agent_observe_in_place(agent, kAgents * kStride - kSenses + 1),
          IMP_ERROR_INVALID_ARGUMENT, "first: found 27, expected at most 26");
  refused(api_->vulkan->agent_observe_in_place(other, 0), IMP_ERROR_UNSUPPORTED,
          "found no tensor for observations");
  EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agent, kAgents * kStride - kSenses));
  EXPECT_WORKS(api_->vulkan->tensor_acquire(rows));  // of one family: nothing to do
  EXPECT_WORKS(api_->vulkan->tensor_release(rows));
  imp_submit_info submit = imp_submit_info_init();
  submit.wait_count = 1;
  refused(api_->vulkan->frame_submit_with(context_, &submit), IMP_ERROR_INVALID_ARGUMENT,
          "info.waits: found null");
  const imp_vk_semaphore none{};
  submit.waits = &none;
  refused(api_->vulkan->frame_submit_with(context_, &submit), IMP_ERROR_INVALID_ARGUMENT,
          "waits[0].semaphore: found null");
  submit.wait_count = 0;
  EXPECT_WORKS(api_->vulkan->frame_submit_with(context_, &submit));
  EXPECT_WORKS(api_->frame_end(context_));
  close();
}

// Its zeros are not written yet, and must not go to memory that has a new owner.
TEST_F(T10SharedBrainMisuse, ATensorMayGoBeforeItWasEverUsed) {
  open(kEverything, true);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_WORKS(api_->vulkan->tensor_destroy(make({kAgents, kWidth})));
    ASSERT_WORKS(api_->context_trim(context_, nullptr));
    imp_frame_info info = imp_frame_info_init();
    info.frame = number;
    ASSERT_WORKS(api_->frame_begin(context_, &info));
    ASSERT_WORKS(api_->frame_submit(context_, UINT32_MAX));
    ASSERT_WORKS(api_->frame_end(context_));
  }
  close();
}

// Numbers that are not finite reach no weight, although the CPU never sees them.
TEST_F(T10SharedBrainMisuse, NumbersThatAreNotFiniteCountAsZero) {
  open(kEverything, true);
  rows_ = shaders_->make_buffer(kAgents * kStride * sizeof(float),
                                VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
  game::BrainDesc desc = describe(IMP_LEARNER_CLONING);
  const imp_tensor rows = import(rows_, {kAgents, kStride}), actions = make({kAgents, kWidth});
  desc.observations = rows;
  desc.actions = actions;
  imp_brain brain{};
  ASSERT_WORKS(api_->brain_create(context_, c_form(desc), &brain));
  imp_agent agent{}, zero{};
  ASSERT_WORKS(api_->agent_create(brain, 0, &agent));
  ASSERT_WORKS(api_->agent_create(brain, 0, &zero));
  for (const imp_agent each : {agent, zero}) ASSERT_WORKS(api_->agent_set_mode(each, IMP_MODE_INFERENCE));
  ASSERT_WORKS(api_->context_warmup(context_, nullptr, nullptr));
  const VkCommandBuffer commands = host_->begin_frame(1);
  host_->vk().vkCmdFillBuffer(commands, rows_.buffer, 0, VK_WHOLE_SIZE, 0x7FC00000u);
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT;
  host_->vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                                   nullptr);
  host_->end_frame();
  const float zeros[kSenses] = {};
  imp_action answers[2] = {imp_action_init(), imp_action_init()};
  for (std::uint64_t number = 1; number <= 4; ++number) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = number;
    ASSERT_WORKS(api_->frame_begin(context_, &info));
    if (number == 1) {
      EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agent, 0));
      EXPECT_WORKS(api_->agent_observe(zero, zeros, kSenses));
    } else if (number == 4) {
      EXPECT_WORKS(api_->agent_act(agent, &answers[0]));
      EXPECT_WORKS(api_->agent_act(zero, &answers[1]));
    }
    EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
    EXPECT_WORKS(api_->frame_end(context_));
    EXPECT_WORKS(api_->context_drain(context_, 60'000));
  }
  for (std::uint32_t i = 0; i < answers[0].value_count; ++i)
    EXPECT_EQ(answers[0].values[i], answers[1].values[i]);
  close();
}

}  // namespace
}  // namespace imprint::bridge

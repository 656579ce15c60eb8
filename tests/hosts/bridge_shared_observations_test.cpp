// T10, through the C ABI. Shared observations longer than one binding reaches, and those of policies from
// files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "tests/hosts/bridge_shared_brain.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

class T10SharedObservations : public SharedBrain {
 protected:
  // The host's own copy into the buffer, at this element.
  void put(VkCommandBuffer commands, std::uint64_t element, std::span<const float> values) {
    host_->vk().vkCmdUpdateBuffer(commands, rows_.buffer, element * sizeof(float), values.size_bytes(),
                                  values.data());
  }

  void make_rows(std::uint64_t elements) {
    rows_ = shaders_->make_buffer(elements * sizeof(float),
                                  VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    rows_.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
    rows_.access = VK_ACCESS_TRANSFER_WRITE_BIT;
  }

  // The host writes, each agent looks by `look`, and their answers are returned.
  std::vector<std::vector<float>> ask(std::span<const imp_agent> agents,
                                      const std::function<void(VkCommandBuffer)>& write,
                                      const std::function<void(std::size_t)>& look) {
    std::vector<std::vector<float>> answers(agents.size());
    for (std::uint64_t part = 1; part <= 3; ++part) {
      const std::uint64_t number = ++number_;
      const VkCommandBuffer commands = host_->begin_frame(number);
      if (part == 1) write(commands);
      host_->end_frame();
      imp_frame_info info = imp_frame_info_init();
      info.frame = number;
      info.time_s = static_cast<double>(number);
      EXPECT_WORKS(api_->frame_begin(context_, &info));
      for (std::size_t i = 0; i < agents.size(); ++i) {
        imp_action action = imp_action_init();
        if (part == 1) look(i);
        if (part < 3) continue;
        EXPECT_WORKS(api_->agent_act(agents[i], &action));
        answers[i].assign(action.values, action.values + action.value_count);
      }
      EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
      EXPECT_WORKS(api_->frame_end(context_));
      EXPECT_WORKS(api_->context_drain(context_, 60'000));
    }
    return answers;
  }

  std::vector<imp_agent> create_agents(imp_brain brain, std::size_t count) {
    std::vector<imp_agent> agents(count);
    for (imp_agent& agent : agents) EXPECT_WORKS(api_->agent_create(brain, 0, &agent));
    EXPECT_WORKS(api_->context_warmup(context_, nullptr, nullptr));
    return agents;
  }

  std::uint64_t number_ = 0;
};

// 160 MiB, where one binding of some devices reaches 128: at both ends, on both sides of a part's border, and
// across it.
TEST_F(T10SharedObservations, LieBeyondTheReachOfOneBinding) {
  open(kEverything, true);
  constexpr std::uint64_t kElements = (std::uint64_t{160} << 20) / sizeof(float);
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(host_->physical_device(), &properties);
  const std::uint64_t step = std::max<std::uint64_t>(properties.limits.minStorageBufferOffsetAlignment, 16),
                      row = kStride * sizeof(float);
  const std::uint64_t group = step / std::gcd(step, row),
                      rows = properties.limits.maxStorageBufferRange / row / group * group;
  const std::uint64_t border = std::min(rows * kStride, kElements / 2);
  const std::array<std::uint64_t, kAgents> places = {0,          border - kSenses, border - 3,
                                                     border - 1, border,           kElements - kSenses};
  make_rows(kElements);
  game::BrainDesc desc = describe(IMP_LEARNER_NONE);
  imp_brain blind{}, brain{};
  ASSERT_WORKS(api_->brain_create(context_, c_form(desc), &blind));
  desc.observations = import(rows_, {kElements / kStride, kStride});
  ASSERT_WORKS(api_->brain_create(context_, c_form(desc), &brain));
  const auto write = [&](VkCommandBuffer commands) {
    std::vector<float> values;
    for (std::uint64_t at = border - 8; at < border + 8; ++at)
      values.push_back(number_of(1, static_cast<std::uint32_t>(at)));
    put(commands, border - 8, values);
    for (const std::uint64_t place : {places.front(), places.back()}) {
      values.clear();
      for (std::uint64_t at = place; at < place + kSenses; ++at)
        values.push_back(number_of(1, static_cast<std::uint32_t>(at)));
      put(commands, place, values);
    }
  };
  const std::vector<imp_agent> agents = create_agents(brain, kAgents), others = create_agents(blind, kAgents);
  const auto seen = ask(agents, write, [&](std::size_t i) {
    EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agents[i], places[i]));
  });
  const auto told = ask(
      others, [](VkCommandBuffer) {},
      [&](std::size_t i) {
        float values[kSenses];
        for (std::uint32_t c = 0; c < kSenses; ++c)
          values[c] = number_of(1, static_cast<std::uint32_t>(places[i] + c));
        EXPECT_WORKS(api_->agent_observe(others[i], values, kSenses));
      });
  for (std::size_t i = 0; i < kAgents; ++i) {
    ASSERT_EQ(seen[i].size(), 2u);
    for (std::size_t k = 0; k < 2; ++k) EXPECT_FLOAT_EQ(seen[i][k], told[i][k]) << "place " << places[i];
    EXPECT_NE(seen[i], seen[(i + 1) % kAgents]) << "each sees its own row";
  }
  close();
}

// Observations in the host's buffer are stacked on the device, as those that are told are on the CPU.
TEST_F(T10SharedObservations, AreStacked) {
  open(kBaseline, true);
  make_rows(64);
  game::BrainDesc desc = describe(IMP_LEARNER_NONE);
  desc.network.stack = 3;
  imp_brain blind{}, brain{};
  ASSERT_WORKS(api_->brain_create(context_, c_form(desc), &blind));
  desc.observations = import(rows_, {64});
  ASSERT_WORKS(api_->brain_create(context_, c_form(desc), &brain));
  const std::vector<imp_agent> agents = create_agents(brain, 2), others = create_agents(blind, 2);
  std::vector<std::vector<float>> before;
  for (std::uint32_t step = 0; step < 6; ++step) {
    std::vector<float> values;
    for (std::uint32_t i = 0; i < 2 * kSenses; ++i) values.push_back(number_of(step, i));
    if (step == 4)  // the second agent's episode ends
      for (const imp_agent agent : {agents[1], others[1]}) {
        imp_frame_info info = imp_frame_info_init();
        info.frame = ++number_;
        info.time_s = static_cast<double>(number_);
        EXPECT_WORKS(api_->frame_begin(context_, &info));
        EXPECT_WORKS(api_->agent_end_episode(agent, IMP_EPISODE_TERMINATED));
        EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
        EXPECT_WORKS(api_->frame_end(context_));
      }
    const auto seen = ask(
        agents, [&](VkCommandBuffer commands) { put(commands, 8, values); },
        [&](std::size_t i) {
          EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agents[i], 8 + i * kSenses));
        });
    const auto told = ask(
        others, [](VkCommandBuffer) {},
        [&](std::size_t i) {
          EXPECT_WORKS(api_->agent_observe(others[i], values.data() + i * kSenses, kSenses));
        });
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(seen[i].size(), 2u);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_FLOAT_EQ(seen[i][k], told[i][k]) << step << ", agent " << i;
    }
    EXPECT_NE(seen, before);
    before = seen;
  }
  close();
}

// A policy from a file observes what the host wrote and answers where the host reads. Its memory belongs to
// the agent.
TEST_F(T10SharedObservations, AreThoseOfPoliciesFromFilesToo) {
  open(kBaseline, true);
  imprint::test::OnnxBuilder builder;  // state' = state + observation, action = state'
  builder.input("obs", {"batch", "3"})
      .input("state_ins", {"batch", "3"})
      .output("action")
      .output("state_outs");
  builder.node("Add", {"obs", "state_ins"}, {"state_outs"}).node("Identity", {"state_outs"}, {"action"});
  const auto file = builder.bytes();
  make_rows(64);
  imp_policy_desc desc = imp_policy_desc_init();
  desc.data = file.data();
  desc.size = file.size();
  desc.agent_capacity = 2;
  imp_brain brain{};
  desc.observations = {12345};
  EXPECT_EQ(api_->brain_create_from_onnx(context_, &desc, &brain), IMP_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(api_->last_error(),
              HasSubstr("brain_create_from_onnx: desc.observations: found a destroyed or foreign handle"));
  desc.observations = import(rows_, {64});
  desc.actions = make({2, 4});
  EXPECT_EQ(api_->brain_create_from_onnx(context_, &desc, &brain), IMP_ERROR_SHAPE_MISMATCH);
  EXPECT_THAT(api_->last_error(), HasSubstr("expected [2, 3]"));
  desc.actions = make({2, 3});
  ASSERT_WORKS(api_->brain_create_from_onnx(context_, &desc, &brain));
  imp_brain_info info = imp_brain_info_init();
  EXPECT_WORKS(api_->brain_get_info(brain, &info));
  EXPECT_EQ(info.action_width, 3u);
  imp_vk_buffer place = imp_vk_buffer_init();
  EXPECT_WORKS(api_->vulkan->tensor_export_vk(desc.actions, &place));
  HostBuffer exported;
  std::memcpy(&exported.buffer, &place.buffer, sizeof place.buffer);
  exported.offset = place.offset;
  exported.size = place.size;

  const std::vector<imp_agent> agents = create_agents(brain, 2);
  const float seen[] = {1, 2, 3, 10, 20, 30}, told[] = {100, 200, 300};
  using testing::ElementsAre;
  const auto in_place = [&](std::size_t i) {
    EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agents[i], 40 + 3 * i));
  };
  const auto nothing = [](VkCommandBuffer) {};
  auto answers = ask(
      agents, [&](VkCommandBuffer commands) { put(commands, 40, seen); }, in_place);
  EXPECT_THAT(answers[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(answers[1], ElementsAre(10, 20, 30));
  answers = ask(std::span(agents).first(1), nothing,
                [&](std::size_t i) { EXPECT_WORKS(api_->agent_observe(agents[i], told, 3)); });
  EXPECT_THAT(answers[0], ElementsAre(101, 202, 303)) << "and its commands";
  answers = ask(agents, nothing, in_place);
  EXPECT_THAT(answers[0], ElementsAre(102, 204, 306));
  EXPECT_THAT(answers[1], ElementsAre(20, 40, 60));
  const VkCommandBuffer commands = host_->begin_frame(++number_);
  shaders_->double_and_add_one(commands, exported, 6);
  host_->end_frame();
  host_->finish_frames();
  EXPECT_THAT(shaders_->result().first(6), ElementsAre(205, 409, 613, 41, 81, 121));
  close();
}

}  // namespace
}  // namespace imprint::bridge

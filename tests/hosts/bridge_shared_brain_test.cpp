// T10, through the C ABI. Agents observe what a host's compute shader wrote and never saw the processor,
// learn from it to the same bits as from the same numbers handed in, and write their actions where the host's
// shader reads them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/buffer_host.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint::bridge {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kAgents = 6, kStride = 5, kSenses = 4,
                        kWidth = 1 + 2 + 4;  // a choice and two numbers; then the values of all four outputs
constexpr std::uint64_t kFrames = 160;

const HostProfile kBaseline{"baseline_1_1", VK_API_VERSION_1_1, false};
const HostProfile kEverything{"everything_1_3", VK_API_VERSION_1_3, true};

enum class Senses { arrays, in_place };

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api_->last_error()
#define EXPECT_WORKS(call) EXPECT_EQ(call, IMP_OK) << api_->last_error()

// What the host writes is new in every other frame, so that an agent that looks and has its turn a frame
// later sees the same.
std::uint64_t news(std::uint64_t frame) { return (frame - 1) / 2 * 2 + 1; }

std::array<float, kSenses> senses(std::uint64_t frame, std::uint32_t agent) {
  frame = news(frame);
  std::array<float, kSenses> values{};
  for (std::uint32_t c = 0; c < kSenses; ++c)
    values[c] = number_of(static_cast<std::uint32_t>(frame), agent * kSenses + c);
  return values;
}

imp_vk_buffer declare(const HostBuffer& host) {
  imp_vk_buffer buffer = imp_vk_buffer_init();
  std::memcpy(&buffer.buffer, &host.buffer, sizeof host.buffer);
  buffer.offset = host.offset;
  buffer.size = host.size;
  buffer.usage = host.usage;
  buffer.sharing = static_cast<std::uint32_t>(host.sharing);
  buffer.memory_flags = host.memory_flags;
  buffer.stages = host.stages;
  buffer.access = host.access;
  return buffer;
}

struct Learned {
  std::uint64_t low = 0, high = 0;
  std::vector<std::uint32_t> choices;
  std::vector<float> shared_rows;  // what the host's shader made of the shared actions in the last frame
  std::vector<float> answers;      // the same rows, from imp_action
  imp_brain_stats stats{};
  bool operator==(const Learned& other) const {
    return low == other.low && high == other.high && choices == other.choices;
  }
};

class SharedBrain : public testing::Test {
 protected:
  void open(const HostProfile& profile, bool submits) {
    host_ = std::make_unique<PlainHost>(profile);
    ASSERT_TRUE(host_->ok());
    shaders_ = std::make_unique<BufferHost>(*host_);
    submits_ = submits;
    const vk::DeviceDescription device = host_->describe();
    const imp_vk_device_info info =
        submits ? locked_info(*host_, device) : device_info(*host_, device, IMP_QUEUE_RECORD_ONLY);
    imp_limits limits = imp_limits_init();
    limits.gpu_us_per_frame = UINT32_MAX;
    ASSERT_WORKS(api_->context_create(&info, nullptr, &limits, &context_));
    rows_ = shaders_->make_buffer(kAgents * kStride * sizeof(float), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  }

  void close() {
    EXPECT_WORKS(api_->context_destroy(context_));
    shaders_.reset();
    EXPECT_EQ(host_->messages(), 0u) << host_->first_message();
    host_.reset();
  }

  imp_tensor import(const HostBuffer& buffer, std::initializer_list<std::uint64_t> shape) {
    const imp_tensor_desc desc = game::TensorDesc{.name = "observations", .shape = shape};
    const imp_vk_buffer declared = declare(buffer);
    imp_tensor tensor{};
    EXPECT_WORKS(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor));
    return tensor;
  }

  imp_tensor make(std::initializer_list<std::uint64_t> shape) {
    const imp_tensor_desc desc = game::TensorDesc{.name = "actions", .shape = shape};
    imp_vk_buffer wish = imp_vk_buffer_init();
    wish.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
    wish.stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    wish.access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    imp_tensor tensor{};
    EXPECT_WORKS(api_->vulkan->tensor_create_vk(context_, &desc, &wish, &tensor));
    return tensor;
  }

  template <class Options>
  static Options tuned() {
    Options options;
    options.learn_period_frames = 2;
    options.replay_capacity = 512;
    options.learning_rate = 3e-3f;
    return options;
  }

  static game::BrainDesc describe(imp_learner learner) {
    game::BrainDesc desc;
    desc.observation_count = kSenses;
    desc.branch_sizes = {2};
    desc.hidden_sizes = {16};
    desc.agents_per_brain = kAgents;
    desc.seed = 7;
    desc.continuous_count = learner == IMP_LEARNER_CLONING ? 2 : 0;
    if (learner == IMP_LEARNER_FEEDBACK) desc.learner = tuned<game::FeedbackOptions>();
    if (learner == IMP_LEARNER_CLONING) desc.learner = tuned<game::CloningOptions>();
    return desc;
  }

  void frame(std::uint64_t number, const std::function<void()>& work) {
    VkCommandBuffer commands = host_->begin_frame(2 * number);
    shaders_->write_rows(commands, rows_, static_cast<std::uint32_t>(news(number)), kAgents);
    if (submits_) host_->end_frame();
    imp_frame_info info = imp_frame_info_init();
    info.frame = number;
    info.safe_frame = submits_ ? 0 : host_->safe_frame() / 2;
    info.time_s = static_cast<double>(number) / 60;
    EXPECT_WORKS(api_->frame_begin(context_, &info));
    work();
    if (submits_) {
      EXPECT_WORKS(api_->frame_submit(context_, UINT32_MAX));
      commands = host_->begin_frame(2 * number + 1);
    } else {
      imp_record_info record = imp_record_info_init();
      record.command_buffer = commands;
      EXPECT_WORKS(api_->vulkan->frame_record(context_, &record, nullptr));
    }
    EXPECT_WORKS(api_->frame_end(context_));
    if (exported_.buffer) shaders_->double_and_add_one(commands, exported_, kAgents * width_);
    host_->end_frame();
  }

  // Everybody learns for kFrames frames, deciding in turns of so many; then everybody is asked once more.
  Learned play(imp_learner learner, std::uint32_t period, Senses by) {
    Learned learned;
    game::BrainDesc desc = describe(learner);
    desc.decision_period_frames = period;
    width_ = learner == IMP_LEARNER_CLONING ? kWidth : 1 + 2;
    imp_tensor observations{}, actions{};
    if (by == Senses::in_place) {
      desc.observations = observations = import(rows_, {kAgents, kStride});
      desc.actions = actions = make({kAgents, width_});
      imp_vk_buffer place = imp_vk_buffer_init();
      EXPECT_WORKS(api_->vulkan->tensor_export_vk(actions, &place));
      EXPECT_NE(place.memory, 0u);
      exported_ = {};
      std::memcpy(&exported_.buffer, &place.buffer, sizeof place.buffer);
      exported_.offset = place.offset;
      exported_.size = place.size;
    }
    imp_brain brain{};
    EXPECT_WORKS(api_->brain_create(context_, c_form(desc), &brain));
    imp_brain_info info = imp_brain_info_init();
    EXPECT_WORKS(api_->brain_get_info(brain, &info));
    EXPECT_EQ(info.action_width, width_);
    std::vector<imp_agent> agents(kAgents);
    for (imp_agent& agent : agents) {
      EXPECT_WORKS(api_->agent_create(brain, 0, &agent));
      if (learner == IMP_LEARNER_CLONING) EXPECT_WORKS(api_->agent_set_mode(agent, IMP_MODE_RECORD));
    }
    EXPECT_WORKS(api_->context_warmup(context_, nullptr, nullptr));

    const auto look = [&](std::uint64_t frame, std::uint32_t i) {
      if (by == Senses::in_place)
        EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agents[i], i * kStride));
      else
        EXPECT_WORKS(api_->agent_observe(agents[i], senses(frame, i).data(), kSenses));
    };
    for (std::uint64_t number = 1; number <= kFrames; ++number) {
      frame(number, [&] {
        for (std::uint32_t i = 0; i < kAgents; ++i) {
          if (number % 2) look(number, i);
          if (learner == IMP_LEARNER_CLONING) {
            if (number % 2 == 0) continue;
            const std::array<float, kSenses> seen = senses(number, i);
            const std::uint32_t branch = seen[0] > 0;
            const float continuous[] = {seen[1] / 2, -seen[2] / 2};
            EXPECT_WORKS(api_->agent_heuristic(agents[i], &branch, 1, continuous, 2));
          } else {
            imp_action action = imp_action_init();
            const imp_result result = api_->agent_act(agents[i], &action);
            if (result != IMP_OK || action.requested_frame + 2 != number) continue;
            if (period > 1) EXPECT_EQ((action.requested_frame - 1) % period, i % period) << "out of turn";
            learned.choices.push_back(action.branches[0]);
            EXPECT_WORKS(api_->agent_reward(
                agents[i], action.branches[0] == (senses(number - 2, i)[0] > 0) ? 1.0f : -0.5f));
          }
        }
      });
    }
    // Greedily, and late enough for the answers to be there.
    for (const imp_agent agent : agents) EXPECT_WORKS(api_->agent_set_mode(agent, IMP_MODE_INFERENCE));
    EXPECT_WORKS(api_->brain_set_learning(brain, 0));
    for (std::uint64_t number = kFrames + 1; number <= kFrames + 4; ++number) {
      frame(number, [&] {
        for (std::uint32_t i = 0; i < kAgents && number == kFrames + 1; ++i) look(number, i);
      });
      host_->finish_frames();
    }
    for (std::uint32_t i = 0; i < kAgents * width_; ++i)
      learned.shared_rows.push_back((shaders_->result()[i] - 1) / 2);
    frame(kFrames + 5, [&] {
      for (const imp_agent agent : agents) {
        imp_action action = imp_action_init();
        EXPECT_WORKS(api_->agent_act(agent, &action));
        learned.choices.push_back(action.branches[0]);
        learned.answers.push_back(static_cast<float>(action.branches[0]));
        learned.answers.insert(learned.answers.end(), action.continuous,
                               action.continuous + action.continuous_count);
        learned.answers.insert(learned.answers.end(), action.values, action.values + action.value_count);
      }
    });
    host_->finish_frames();
    if (submits_) {
      EXPECT_WORKS(api_->context_drain(context_, 60'000));
      EXPECT_WORKS(api_->tools->brain_hash(brain, &learned.low, &learned.high));
    } else {
      frame(kFrames + 6, [] {});
      host_->finish_frames();
      imp_frame_info last = imp_frame_info_init();
      last.frame = kFrames + 7;
      last.safe_frame = kFrames + 6;
      last.time_s = 1e3;
      EXPECT_WORKS(api_->frame_begin(context_, &last));
      EXPECT_WORKS(api_->frame_end(context_));
    }
    learned.stats = imp_brain_stats_init();
    EXPECT_WORKS(api_->tools->brain_get_stats(brain, &learned.stats));
    imp_context_stats stats = imp_context_stats_init();
    EXPECT_WORKS(api_->tools->context_get_stats(context_, &stats));
    EXPECT_EQ(stats.frame_allocations + stats.frame_compiles + stats.frame_waits, 0u);
    if (by == Senses::in_place) EXPECT_EQ(api_->vulkan->tensor_destroy(actions), IMP_ERROR_WRONG_STATE);
    EXPECT_WORKS(api_->brain_destroy(brain));
    if (by == Senses::in_place) {
      EXPECT_WORKS(api_->vulkan->tensor_destroy(actions));
      EXPECT_WORKS(api_->vulkan->tensor_destroy(observations));
      EXPECT_EQ(api_->vulkan->tensor_destroy(actions), IMP_ERROR_INVALID_HANDLE);
    }
    exported_ = {};
    return learned;
  }

  void expect_learned(const Learned& learned) {
    std::uint32_t right = 0;
    for (std::uint32_t i = 0; i < kAgents; ++i)
      right += learned.choices[learned.choices.size() - kAgents + i] == (senses(kFrames + 1, i)[0] > 0);
    EXPECT_GE(right, kAgents - 1);
    EXPECT_GT(learned.stats.samples, 200u);
    EXPECT_EQ(learned.stats.dropped_samples, 0u);
    EXPECT_EQ(learned.stats.late_actions, 0u);
  }

  static void expect_rows(const Learned& learned) {
    ASSERT_EQ(learned.shared_rows.size(), learned.answers.size());
    for (std::size_t i = 0; i < learned.answers.size(); ++i)
      EXPECT_NEAR(learned.shared_rows[i], learned.answers[i], 1e-6) << i;
  }

  const imp_api* api_ = table();
  std::unique_ptr<PlainHost> host_;
  std::unique_ptr<BufferHost> shaders_;
  bool submits_ = true;
  imp_context context_{};
  HostBuffer rows_, exported_;
  std::uint32_t width_ = 0;
};

struct Way {
  imp_learner learner;
  std::uint32_t period;  // imp_brain_desc::decision_period_frames
};

class T10SharedBrain : public SharedBrain, public testing::WithParamInterface<Way> {};

TEST_P(T10SharedBrain, LearnsInPlaceWhatItLearnsFromArrays) {
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
                                         Way{IMP_LEARNER_FEEDBACK, 2}, Way{IMP_LEARNER_CLONING, 2}),
                         [](const auto& way) {
                           return std::string(way.param.learner == IMP_LEARNER_FEEDBACK ? "feedback"
                                                                                        : "cloning") +
                                  (way.param.period > 1 ? "_in_turns" : "");
                         });

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
          "buffer is null");
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, nullptr), IMP_ERROR_INVALID_ARGUMENT,
          "tensor is null");
  desc.rank = 9;
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.rank is 9");
  desc = game::TensorDesc{.name = "rows", .shape = {kAgents, 0}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.shape[1] is 0");
  desc = game::TensorDesc{.name = "rows", .shape = {1u << 20, 1u << 20}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "desc.shape[1] is 1048576");
  desc = game::TensorDesc{.name = "rows", .shape = {kAgents, kStride + 1}};
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "'rows' [6, 6] needs 144 bytes, the range has 120");
  declared.family_count = 2;
  refused(api_->vulkan->tensor_import_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "buffer.families is null");
  declared.family_count = 0;
  refused(api_->vulkan->tensor_create_vk(context_, &desc, &declared, &tensor), IMP_ERROR_INVALID_ARGUMENT,
          "wish.buffer, offset, size");

  const imp_tensor rows = import(rows_, {kAgents, kStride}), actions = make({kAgents, kWidth});
  imp_brain brain{};
  game::BrainDesc bad = describe(IMP_LEARNER_CLONING);
  bad.observations = {12345};
  refused(api_->brain_create(context_, c_form(bad), &brain), IMP_ERROR_INVALID_ARGUMENT,
          "desc.observations is no tensor");
  bad.observations = rows;
  bad.observation_count = 31;
  refused(api_->brain_create(context_, c_form(bad), &brain), IMP_ERROR_SHAPE_MISMATCH,
          "at least one observation of 31 numbers");
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
          IMP_ERROR_INVALID_ARGUMENT, "place is 27");
  refused(api_->vulkan->agent_observe_in_place(other, 0), IMP_ERROR_UNSUPPORTED, "shares no observations");
  EXPECT_WORKS(api_->vulkan->agent_observe_in_place(agent, kAgents * kStride - kSenses));
  EXPECT_WORKS(api_->vulkan->tensor_acquire(rows));  // of one family: nothing to do
  EXPECT_WORKS(api_->vulkan->tensor_release(rows));
  imp_submit_info submit = imp_submit_info_init();
  submit.wait_count = 1;
  refused(api_->vulkan->frame_submit_with(context_, &submit), IMP_ERROR_INVALID_ARGUMENT,
          "info.waits is null");
  const imp_vk_semaphore none{};
  submit.waits = &none;
  refused(api_->vulkan->frame_submit_with(context_, &submit), IMP_ERROR_INVALID_ARGUMENT,
          "waits[0].semaphore is null");
  submit.wait_count = 0;
  EXPECT_WORKS(api_->vulkan->frame_submit_with(context_, &submit));
  EXPECT_WORKS(api_->frame_end(context_));
  close();
}

// ---- what no learning brain is asked
// ----------------------------------------------------------------------------------------------------------------

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

  // The host writes, then each agent is asked by its look; their answers.
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

  std::vector<imp_agent> seat(imp_brain brain, std::size_t count) {
    std::vector<imp_agent> agents(count);
    for (imp_agent& agent : agents) EXPECT_WORKS(api_->agent_create(brain, 0, &agent));
    EXPECT_WORKS(api_->context_warmup(context_, nullptr, nullptr));
    return agents;
  }

  std::uint64_t number_ = 0;
};

// 160 MiB, where a binding of some devices reaches 128: at both ends, on either side of where one part ends,
// and across it.
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
  const std::vector<imp_agent> agents = seat(brain, kAgents), others = seat(blind, kAgents);
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
    EXPECT_NE(seen[i], seen[(i + 1) % kAgents]) << "each sees something of its own";
  }
  close();
}

// A policy from a file sees what the host wrote and answers where the host reads, with memory that belongs to
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
  EXPECT_THAT(api_->last_error(), HasSubstr("brain_create_from_onnx: desc.observations is no tensor"));
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

  const std::vector<imp_agent> agents = seat(brain, 2);
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
  EXPECT_THAT(answers[0], ElementsAre(101, 202, 303)) << "and what it is told";
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

// Its zeros were not written yet: they go to no memory that is somebody else's by now.
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

// Numbers that are not finite reach no weight, though nobody on the processor could see them.
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

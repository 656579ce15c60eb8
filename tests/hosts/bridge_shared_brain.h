#pragma once
// A brain that observes and acts in buffers shared with a host, taught a small task: the fixture of
// T10SharedBrain and T10SharedObservations.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/hosts/bridge_abi.h"
#include "tests/hosts/buffer_host.h"

namespace imprint::bridge {

inline constexpr std::uint32_t kAgents = 6, kStride = 5, kSenses = 4,
                               kWidth = 1 + 2 +
                                        4;  // a choice and two numbers; then the values of all four outputs
inline constexpr std::uint64_t kFrames = 160;

inline const HostProfile kBaseline{"baseline_1_1", VK_API_VERSION_1_1, false};
inline const HostProfile kEverything{"everything_1_3", VK_API_VERSION_1_3, true};

enum class Senses { arrays, in_place };

#define ASSERT_WORKS(call) ASSERT_EQ(call, IMP_OK) << api_->last_error()
#define EXPECT_WORKS(call) EXPECT_EQ(call, IMP_OK) << api_->last_error()

// The host writes new values every other frame, so that an agent that decides a frame later sees the same.
inline std::uint64_t news(std::uint64_t frame) { return (frame - 1) / 2 * 2 + 1; }

inline std::array<float, kSenses> senses(std::uint64_t frame, std::uint32_t agent) {
  frame = news(frame);
  std::array<float, kSenses> values{};
  for (std::uint32_t c = 0; c < kSenses; ++c)
    values[c] = number_of(static_cast<std::uint32_t>(frame), agent * kSenses + c);
  return values;
}

inline imp_vk_buffer declare(const HostBuffer& host) {
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

  static game::DqnOptions dqn() {
    auto options = tuned<game::DqnOptions>();
    options.discount = 0.5f;
    options.epsilon_decisions = 60;
    options.target_period = 10;
    return options;
  }
  static game::PpoOptions ppo() {
    game::PpoOptions options;
    options.learn_period_frames = 2;
    options.learning_rate = 1e-2f;
    options.discount = 0.5f;
    options.rollout_steps = 48;
    options.batch_size = 24;
    options.epochs = 8;
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
    if (learner == IMP_LEARNER_DQN) desc.learner = dqn();
    if (learner == IMP_LEARNER_PPO) desc.learner = ppo();
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

  // One game: which learner observes how, and what it learned.
  struct Play {
    imp_learner learner;
    std::uint32_t period;  // imp_brain_desc::decision_period_frames
    Senses by;
    imp_tensor observations{}, actions{};
    imp_brain brain{};
    std::vector<imp_agent> agents{};
    Learned learned{};
  };

  // All agents learn for kFrames frames, deciding every `period` frames. Then each is asked again.
  Learned play(imp_learner learner, std::uint32_t period, Senses by) {
    Play play{learner, period, by};
    prepare(play);
    learn(play);
    ask(play);
    finish(play);
    return play.learned;
  }

  void prepare(Play& play) {
    game::BrainDesc desc = describe(play.learner);
    desc.decision_period_frames = play.period;
    width_ = play.learner == IMP_LEARNER_CLONING ? kWidth : 1 + 2;
    if (play.by == Senses::in_place) {
      desc.observations = play.observations = import(rows_, {kAgents, kStride});
      desc.actions = play.actions = make({kAgents, width_});
      imp_vk_buffer place = imp_vk_buffer_init();
      EXPECT_WORKS(api_->vulkan->tensor_export_vk(play.actions, &place));
      EXPECT_NE(place.memory, 0u);
      exported_ = {};
      std::memcpy(&exported_.buffer, &place.buffer, sizeof place.buffer);
      exported_.offset = place.offset;
      exported_.size = place.size;
    }
    EXPECT_WORKS(api_->brain_create(context_, c_form(desc), &play.brain));
    imp_brain_info info = imp_brain_info_init();
    EXPECT_WORKS(api_->brain_get_info(play.brain, &info));
    EXPECT_EQ(info.action_width, width_);
    play.agents.resize(kAgents);
    for (imp_agent& agent : play.agents) {
      EXPECT_WORKS(api_->agent_create(play.brain, 0, &agent));
      if (play.learner == IMP_LEARNER_CLONING) EXPECT_WORKS(api_->agent_set_mode(agent, IMP_MODE_RECORD));
    }
    EXPECT_WORKS(api_->context_warmup(context_, nullptr, nullptr));
  }

  void look(const Play& play, std::uint64_t frame, std::uint32_t i) {
    if (play.by == Senses::in_place)
      EXPECT_WORKS(api_->vulkan->agent_observe_in_place(play.agents[i], i * kStride));
    else
      EXPECT_WORKS(api_->agent_observe(play.agents[i], senses(frame, i).data(), kSenses));
  }

  void learn(Play& play) {
    for (std::uint64_t number = 1; number <= kFrames; ++number) {
      frame(number, [&] {
        for (std::uint32_t i = 0; i < kAgents; ++i) {
          if (number % 2) look(play, number, i);
          if (play.learner == IMP_LEARNER_CLONING) {
            if (number % 2 == 0) continue;
            const std::array<float, kSenses> seen = senses(number, i);
            const std::uint32_t branch = seen[0] > 0;
            const float continuous[] = {seen[1] / 2, -seen[2] / 2};
            EXPECT_WORKS(api_->agent_heuristic(play.agents[i], &branch, 1, continuous, 2));
          } else {
            imp_action action = imp_action_init();
            const imp_result result = api_->agent_act(play.agents[i], &action);
            if (result != IMP_OK || action.requested_frame + 2 != number) continue;
            if (play.period > 1)
              EXPECT_EQ((action.requested_frame - 1) % play.period, i % play.period) << "out of turn";
            play.learned.choices.push_back(action.branches[0]);
            EXPECT_WORKS(api_->agent_reward(
                play.agents[i], action.branches[0] == (senses(number - 2, i)[0] > 0) ? 1.0f : -0.5f));
          }
        }
      });
    }
  }

  void ask(Play& play) {
    // Greedily, and late enough for the answers to be there.
    for (const imp_agent agent : play.agents) EXPECT_WORKS(api_->agent_set_mode(agent, IMP_MODE_INFERENCE));
    EXPECT_WORKS(api_->brain_set_learning(play.brain, 0));
    for (std::uint64_t number = kFrames + 1; number <= kFrames + 4; ++number) {
      frame(number, [&] {
        for (std::uint32_t i = 0; i < kAgents && number == kFrames + 1; ++i) look(play, number, i);
      });
      host_->finish_frames();
    }
    for (std::uint32_t i = 0; i < kAgents * width_; ++i)
      play.learned.shared_rows.push_back((shaders_->result()[i] - 1) / 2);
    frame(kFrames + 5, [&] {
      for (const imp_agent agent : play.agents) {
        imp_action action = imp_action_init();
        EXPECT_WORKS(api_->agent_act(agent, &action));
        play.learned.choices.push_back(action.branches[0]);
        play.learned.answers.push_back(static_cast<float>(action.branches[0]));
        play.learned.answers.insert(play.learned.answers.end(), action.continuous,
                                    action.continuous + action.continuous_count);
        play.learned.answers.insert(play.learned.answers.end(), action.values,
                                    action.values + action.value_count);
      }
    });
    host_->finish_frames();
  }

  void finish(Play& play) {
    if (submits_) {
      EXPECT_WORKS(api_->context_drain(context_, 60'000));
      EXPECT_WORKS(api_->tools->brain_hash(play.brain, &play.learned.low, &play.learned.high));
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
    play.learned.stats = imp_brain_stats_init();
    EXPECT_WORKS(api_->tools->brain_get_stats(play.brain, &play.learned.stats));
    imp_context_stats stats = imp_context_stats_init();
    EXPECT_WORKS(api_->tools->context_get_stats(context_, &stats));
    EXPECT_EQ(stats.frame_allocations + stats.frame_compiles + stats.frame_waits, 0u);
    if (play.by == Senses::in_place)
      EXPECT_EQ(api_->vulkan->tensor_destroy(play.actions), IMP_ERROR_WRONG_STATE);
    EXPECT_WORKS(api_->brain_destroy(play.brain));
    if (play.by == Senses::in_place) {
      EXPECT_WORKS(api_->vulkan->tensor_destroy(play.actions));
      EXPECT_WORKS(api_->vulkan->tensor_destroy(play.observations));
      EXPECT_EQ(api_->vulkan->tensor_destroy(play.actions), IMP_ERROR_INVALID_HANDLE);
    }
    exported_ = {};
  }

  void expect_learned(const Learned& learned) {
    std::uint32_t right = 0;
    for (std::uint32_t i = 0; i < kAgents; ++i)
      right += learned.choices[learned.choices.size() - kAgents + i] == (senses(kFrames + 1, i)[0] > 0);
    EXPECT_GE(right, kAgents - 1);
    EXPECT_GT(learned.stats.used_samples, 200u);
    EXPECT_EQ(learned.stats.dropped_intake + learned.stats.dropped_stale, 0u);
    EXPECT_LE(learned.stats.dropped_unfollowed, kAgents) << "the steps that the change of mode cut";
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

}  // namespace imprint::bridge

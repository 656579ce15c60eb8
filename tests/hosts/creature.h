#pragma once
// The guest of the adapters' hosts: a creature that learns to walk to a light. Between the marks stands all
// that a host writes for Imprint; a test counts these lines with those of each host.

#include <imprint/imprint.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace imprint::hosts {

// The world, which knows nothing of Imprint. An episode ends at the light, or off the meadow.
class Meadow {
 public:
  static constexpr float kStep = 0.05f;
  float light[2] = {0.5f, -0.5f}, creature[2] = {0, 0};
  std::uint32_t random = 1;
  std::vector<float> rewards;  // of all steps

  float place() {
    return static_cast<float>((random = random * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  }
  float distance() const { return std::hypot(light[0] - creature[0], light[1] - creature[1]); }
  std::array<float, 2> look() const {
    const float far_off = distance() + 0.01f;
    return {(light[0] - creature[0]) / far_off, (light[1] - creature[1]) / far_off};
  }
  float step(std::uint32_t direction) {
    const float before = distance();
    creature[direction / 2] += direction % 2 ? -kStep : kStep;
    rewards.push_back(distance() < before ? 1.0f : -1.0f);
    ended_ = distance() < 2 * kStep || std::fabs(creature[0]) > 1.5f || std::fabs(creature[1]) > 1.5f;
    if (ended_)
      for (int i = 0; i < 2; ++i) light[i] = place(), creature[i] = place();
    return rewards.back();
  }
  // After the last step the episode was over; a new one has begun.
  bool ended() const { return ended_; }
  // The share of the last 100 steps that led nearer to the light.
  float success() const {
    if (rewards.size() < 100) return 0;
    return static_cast<float>(std::count(rewards.end() - 100, rewards.end(), 1.0f)) / 100;
  }

 private:
  bool ended_ = false;
};

// For hosts whose frames are callbacks. False: `failure` has Imprint's text.
struct Creature {
  Meadow meadow;
  std::string failure;
  // imprint: begin
  game::Context context;
  game::Brain brain;
  game::Agent body;
  bool open(const imp_vk_device_info& device) {
    context = game::Context::create(game::Library(imp_get_api), device).value;
    brain = context.create_brain(game::BrainDesc::of(game::FeedbackOptions(), 2, {4})).value;
    body = brain.create_agent().value;
    return (body && context.warmup()) || fails(game::Library(imp_get_api).last_error());
  }
  bool frame(const imp_frame_info& now, VkCommandBuffer commands) {
    game::Frame frame(context, now);
    const game::Action action = frame.act(body);
    if (action.is_new) frame.keep(body.reward(meadow.step(action.choices()[0])));
    if (action.is_new && meadow.ended()) frame.keep(body.end_episode(game::EpisodeEnd::terminated));
    if (action.wants_observation) frame.keep(body.observe(meadow.look()));
    commands ? frame.record(commands) : frame.submit();
    return frame.end().ok() || fails(frame.end().message());
  }
  // imprint: end

  bool fails(const char* text) {
    if (failure.empty()) failure = text;
    return false;
  }
};

// The decisions that a saved creature has made; 0: its file cannot be loaded.
inline std::uint64_t decisions_in(const char* file) {
  imp_standalone_info device = imp_standalone_info_init();
  device.device = "cpu";
  game::Made<game::Context> context = game::Context::create_standalone(game::Library(imp_get_api), device);
  game::Made<game::Brain> brain = context->create_brain(game::BrainDesc::of(game::FeedbackOptions(), 2, {4}));
  return brain->load(file) ? brain->stats()->decisions : 0;
}

}  // namespace imprint::hosts

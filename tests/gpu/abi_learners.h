#pragma once
// Small brains of each learner, and the frames of a game in which they learn at once.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <type_traits>

#include <imprint/imprint.hpp>

#include "tests/gpu/learning_game.h"

namespace imprint::game::test {

// Rewards only, or feedback with exact credit, so that no wait is needed.
template <class Options>
Options prompt() {
  Options options;
  options.learn_period_frames = 1;
  if constexpr (requires { options.credit_delay_s; }) {
    options.credit_delay_s = 0;
    options.credit_width_s = 1e-3f;
  }
  return options;
}

// Options with which a small network learns in a few hundred steps. A learner whose defaults do needs no
// specialisation.
template <class Options>
Options small() {
  return prompt<Options>();
}

template <>
inline DqnOptions small() {
  auto options = prompt<DqnOptions>();
  options.learning_rate = 3e-3f;
  options.replay_capacity = 1000;
  options.target_period = 20;
  options.target_rate = 1;
  options.discount = 0.9f;
  options.epsilon = 0.3f;
  options.epsilon_decisions = 0;
  return options;
}

template <>
inline CoachOptions small() {
  auto options = prompt<CoachOptions>();
  options.learning_rate = 0.3f;
  return options;
}

template <>
inline PpoOptions small() {
  auto options = prompt<PpoOptions>();
  options.learning_rate = 1e-2f;
  options.rollout_steps = 64;
  options.batch_size = 32;
  options.discount = 0.9f;
  options.normalise_observations = options.normalise_rewards = 0;
  options.max_divergence = 0;
  return options;
}

template <>
inline SacOptions small() {
  auto options = prompt<SacOptions>();
  options.learning_rate = 3e-3f;
  options.replay_capacity = 1000;
  options.discount = 0;
  return options;
}

template <>
inline BanditOptions small() {
  auto options = prompt<BanditOptions>();
  options.replay_capacity = 1000;
  return options;
}

template <>
inline PqnOptions small() {
  auto options = prompt<PqnOptions>();
  options.learning_rate = 1e-2f, options.rollout_steps = 64, options.batch_size = 32;
  options.discount = 0.9f, options.epsilon = 0.2f, options.epsilon_decisions = 1;
  return options;
}

template <>
inline EsOptions small() {
  auto options = prompt<EsOptions>();
  options.rollout_steps = 20;
  return options;
}

template <class Options>
BrainDesc describe(const Options& options, std::uint32_t observations, std::uint32_t choices) {
  BrainDesc desc;
  desc.observation_count = observations;
  if constexpr (std::is_same_v<Options, SacOptions>)
    desc.continuous_count = 1;
  else
    desc.branch_sizes = {choices};
  if constexpr (std::is_same_v<Options, EsOptions>) desc.brain_count = 3;  // the least with a pair
  desc.hidden_sizes = {24};
  desc.activation = Activation::tanh;
  desc.action_latency_frames = 1;
  desc.learner = options;
  desc.snapshot_count = 1;
  desc.seed = 3;
  return desc;
}

inline BrainDesc describe(imp_learner learner, std::uint32_t observations, std::uint32_t choices) {
  switch (learner) {
#define IMPRINT_DESCRIBE(name, ENUM, Name, bytes) \
  case IMP_LEARNER_##ENUM:                        \
    return describe(small<Name##Options>(), observations, choices);
    IMP_LEARNERS(IMPRINT_DESCRIBE)
#undef IMPRINT_DESCRIBE
    default:
      return {};
  }
}

class LearnersTest : public imprint::game::test::LearningGame {
 protected:
  // Runs frames until `decisions` decisions and a tenth as many minibatches are complete. A software device
  // may lag. play returns its number of decisions.
  void play_until(int decisions, const std::function<int()>& play) {
    const std::uint64_t minibatches =
        brain.stats().value.minibatches + static_cast<std::uint64_t>(decisions) / 10;
    int made = 0;
    const auto patience =
        std::chrono::steady_clock::now() + std::chrono::minutes(3);  // even on a busy machine
    while ((made < decisions || brain.stats().value.minibatches < minibatches) &&
           std::chrono::steady_clock::now() < patience) {
      pass([&] { made += play(); });
      if (HasFatalFailure()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // the game's own time
    }
    EXPECT_GE(made, decisions) << "the device is far too slow for this";
  }
};

constexpr std::uint32_t kThings = 3, kOptions = 4;  // what is seen, and what there is to choose

}  // namespace imprint::game::test

// The SAC learner through the C interface: numbers from rewards, for a kennel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/learning_game.h"

namespace {

using namespace imprint::game;
using imprint::game::test::one_hot;

constexpr std::uint32_t kLights = 3;

class SacTest : public imprint::game::test::LearningGame {
 protected:
  static BrainDesc steering(std::uint32_t brains) {
    SacOptions options;
    options.learn_period_frames = 1;
    options.batch_size = 32;
    options.replay_capacity = 1000;
    options.learning_rate = 3e-3f;
    options.discount = 0;
    BrainDesc desc = BrainDesc::of(options, kLights, {});
    desc.continuous_count = 2;
    desc.hidden_sizes = {24};
    desc.action_latency_frames = 1;
    desc.brain_count = brains;
    desc.seed = 3;
    return desc;
  }
};

// Each brain of the kennel is paid for other numbers.
TEST_F(SacTest, LearnsTheNumbersThatPay) {
  add(steering(2));
  const auto wanted = [](std::size_t of, std::uint32_t index, std::size_t number) {
    const float first = 0.7f - 0.6f * static_cast<float>(index);
    return (of == 0) == (number == 0) ? first : -first;
  };
  std::vector<std::uint32_t> seen(agents.size());
  std::uint32_t turn = 0;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (brain.stats().value.minibatches < 3000 && std::chrono::steady_clock::now() < patience) {
    pass([&] {
      for (std::size_t i = 0; i < agents.size(); ++i) {
        if (turn > 0) {
          const Made<Action> made = agents[i].act();
          ASSERT_WORKS(made.outcome);
          if (!made.outcome.ready()) continue;
          float pay = 1;
          for (std::size_t k = 0; k < 2; ++k)
            pay -= std::pow(made.value.numbers()[k] - wanted(i, seen[i], k), 2.0f);
          ASSERT_WORKS(agents[i].reward(pay));
          ASSERT_WORKS(agents[i].end_episode(EpisodeEnd::terminated));
        }
        seen[i] = (turn * 7 + static_cast<std::uint32_t>(i)) % kLights;
        ASSERT_WORKS(agents[i].observe(one_hot<kLights>(seen[i])));
      }
      ++turn;
    });
    if (HasFatalFailure()) return;
  }
  for (std::size_t i = 0; i < agents.size(); ++i) {
    pass([&] { ASSERT_WORKS(agents[i].end_episode(EpisodeEnd::terminated)); });
    ASSERT_WORKS(agents[i].set_mode(Mode::inference));
    for (std::uint32_t index = 0; index < kLights; ++index) {
      const Action action = decide(agents[i], one_hot<kLights>(index));
      ASSERT_EQ(action.numbers().size(), 2u);
      for (std::size_t k = 0; k < 2; ++k)
        EXPECT_NEAR(action.numbers()[k], wanted(i, index, k), 0.2f)
            << "brain " << i << ", light " << index << ", number " << k;
    }
  }
}

TEST_F(SacTest, DrawsWhereItLearnsAndTakesTheMiddleWhereItInfers) {
  add(steering(1));
  int beside = 0;
  for (int i = 0; i < 20; ++i) {
    const Action action = decide(agents[0], one_hot<kLights>(1));
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_LE(std::abs(action.numbers()[k]), 1.0f);
      beside += std::abs(action.numbers()[k] - std::tanh(action.values[k])) > 1e-3f;
    }
  }
  EXPECT_GT(beside, 30);
  ASSERT_WORKS(agents[0].set_mode(Mode::inference));
  for (int i = 0; i < 5; ++i) {
    const Action action = decide(agents[0], one_hot<kLights>(1));
    for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(action.numbers()[k], std::tanh(action.values[k]), 1e-5f);
  }
}

}  // namespace

#pragma once

// A game whose brains learn from one-hot observations. Its frames may not compile, allocate or wait, and its
// log stays empty.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/gpu/standalone_game.h"

namespace imprint::game::test {

template <std::size_t N>
std::array<float, N> one_hot(std::uint32_t index) {
  std::array<float, N> observation{};
  observation[index] = 1;
  return observation;
}

class LearningGame : public StandaloneGame {
 protected:
  void SetUp() override { open_test_device(); }
  void TearDown() override {
    const imp_context_stats stats = context.stats().value;
    EXPECT_EQ(stats.frame_compiles, 0u);
    EXPECT_EQ(stats.frame_allocations, 0u);
    EXPECT_EQ(stats.frame_waits, 0u);
    agents.clear();
    brain.reset();
    context.reset();
    // A software device may be late for long.
    std::erase_if(
        log, [](const std::string& line) { return line.find("action_latency_frames") != std::string::npos; });
    EXPECT_TRUE(log.empty()) << log.front();
  }

  // Returns an agent's choice for an observation, after as many frames as that takes.
  Action decide(Agent& agent, std::span<const float> observation) {
    pass([&] { EXPECT_TRUE(agent.observe(observation)); });
    Action action;
    for (bool ready = false; !ready;)
      pass([&] {
        Made<Action> made = agent.act();
        EXPECT_TRUE(made.outcome) << made.outcome.message();
        ready = made || !made.outcome;
        action = made.value;
      });
    return action;
  }
};

}  // namespace imprint::game::test

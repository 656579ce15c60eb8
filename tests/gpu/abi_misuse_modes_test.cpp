// Observations, rewards and choices that the table refuses, and calls that an agent's mode forbids.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include <imprint/imprint.hpp>

#include "tests/gpu/abi_misuse.h"

namespace {

using namespace imprint::game;
using namespace imprint::game::test;

TEST_F(Misuse, NumbersThatAreNone) {
  begin();
  for (const float bad :
       {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const float seen[4] = {0, 0, bad, 0};
    EXPECT_FAILS(api()->agent_observe(agent, seen, 4), IMP_ERROR_INVALID_ARGUMENT, "observation[2]");
    EXPECT_FAILS(api()->agent_reward(agent, bad), IMP_ERROR_INVALID_ARGUMENT, "reward");
    imp_feedback feedback = imp_feedback_init();
    feedback.value = bad;
    EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "value");
    feedback.value = 1;
    feedback.weight = bad;
    EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "weight");
    imp_demonstration shown = imp_demonstration_init();
    shown.observation = seen;
    shown.observation_count = 4;
    EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT, "observation[2]");
  }
  const float seen[5] = {};
  EXPECT_FAILS(api()->agent_observe(agent, seen, 5), IMP_ERROR_INVALID_ARGUMENT,
               "count: found 5, expected 4");
  EXPECT_FAILS(api()->agent_observe(agent, nullptr, 4), IMP_ERROR_INVALID_ARGUMENT, "null");
  imp_feedback feedback = imp_feedback_init();
  feedback.value = 1.5f;
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "-1 to 1");
  feedback.value = 1;
  feedback.time_s = 1e6;
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "time_s");
  feedback.time_s = 0;
  feedback.credit = static_cast<imp_credit>(5);
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_INVALID_ARGUMENT, "credit");
  imp_demonstration shown = imp_demonstration_init();
  shown.observation = seen;
  shown.observation_count = 4;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT,
               "branch_count: found 0, expected 1");
  std::uint32_t branches[] = {3, 0};
  shown.branch_count = 1;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT, "branches: found null");
  shown.branches = branches;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT,
               "branches[0]: found 3, expected below 3");
  branches[0] = 0;
  shown.branch_count = 2;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT,
               "branch_count: found 2, expected 1");
  shown.branch_count = 1;
  const float continuous = 0;
  shown.continuous = &continuous;
  shown.continuous_count = 1;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT,
               "continuous_count: found 1, expected 0");
  shown.continuous_count = 0;
  shown.goal = 2;
  EXPECT_FAILS(api()->agent_demonstrate(agent, &shown), IMP_ERROR_INVALID_ARGUMENT, "goal");
  EXPECT_FAILS(api()->agent_end_episode(agent, static_cast<imp_episode_end>(4)), IMP_ERROR_INVALID_ARGUMENT,
               "end");
}

TEST_F(Misuse, Modes) {
  const std::uint32_t choice[] = {1};
  const float seen[4] = {};
  imp_feedback feedback = imp_feedback_init();
  imp_action action = imp_action_init();
  begin();
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 1, nullptr, 0), IMP_ERROR_WRONG_STATE, "mode");
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_HEURISTIC));
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 1, nullptr, 0), IMP_ERROR_WRONG_STATE, "agent_observe");
  EXPECT_FAILS(api()->agent_heuristic(agent, nullptr, 1, nullptr, 0), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->agent_heuristic(agent, choice, 2, nullptr, 0), IMP_ERROR_INVALID_ARGUMENT,
               "branches: found a count of 2, expected 1");
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_WORKS(api()->agent_heuristic(agent, choice, 1, nullptr, 0));
  EXPECT_WORKS(api()->agent_act(agent, &action));
  EXPECT_EQ(action.branches[0], 1u);
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_INFERENCE));
  EXPECT_FAILS(api()->agent_feedback(agent, &feedback), IMP_ERROR_WRONG_STATE, "inference");
  EXPECT_WORKS(api()->agent_reward(agent, 1.0f));
  EXPECT_WORKS(api()->agent_set_mode(agent, IMP_MODE_LEARNING));
  EXPECT_WORKS(api()->agent_observe(agent, seen, 4));
  EXPECT_EQ(api()->agent_act(agent, &action), IMP_NOT_READY);
  end();
  EXPECT_FAILS(api()->brain_restore(brain, 77), IMP_ERROR_NOT_FOUND, "77");
  EXPECT_FAILS(api()->brain_load(brain, "/nowhere/at/all"), IMP_ERROR_NOT_FOUND, "/nowhere/at/all");
  EXPECT_FAILS(api()->brain_load_weights(brain, "/nowhere/at/all"), IMP_ERROR_NOT_FOUND, "/nowhere/at/all");
  EXPECT_FAILS(api()->brain_load_weights(brain, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->brain_save(brain, nullptr), IMP_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(api()->brain_save(brain, ""), IMP_ERROR_INVALID_ARGUMENT, "empty");
  EXPECT_FAILS(api()->brain_save_status(brain), IMP_ERROR_NOT_FOUND, "never saved");
}

}  // namespace

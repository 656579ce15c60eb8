// The state of a brain for tools that learn it in several processes: arrays out and in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <imprint/imprint.hpp>

#include "tests/gpu/standalone_game.h"

namespace {

using ::testing::HasSubstr;
using namespace imprint::game;

class StateTest : public imprint::game::test::StandaloneGame {
 protected:
  void SetUp() override { open_test_device(); }

  // A policy that is paid for its first choice.
  static BrainDesc paid(std::uint64_t seed) {
    PpoOptions options;
    options.learn_period_frames = 200;
    options.rollout_steps = 32;
    options.batch_size = 16;
    BrainDesc desc = BrainDesc::of(options, 2, {2});
    desc.hidden_sizes = {8};
    desc.action_latency_frames = 1;
    desc.seed = seed;
    return desc;
  }
  // Frames until an update begins.
  void play_until_update() {
    const std::uint64_t before = brain.stats().value.minibatches;
    const float seen[] = {1, 0.5f};
    bool asked = false;
    for (int i = 0; i < 10'000 && brain.stats().value.minibatches == before; ++i)
      pass([&] {
        Agent& agent = agents[0];
        if (asked) {
          const Made<Action> action = agent.act();
          if (!action) return;
          ASSERT_WORKS(agent.reward(action->branches[0] == 0 ? 1.0f : 0.0f));
        }
        ASSERT_WORKS(agent.observe(seen));
        asked = true;
      });
    ASSERT_GT(brain.stats().value.minibatches, before);
  }
  std::vector<std::byte> state() {
    std::vector<std::byte> bytes(brain.state().value);
    const Made<std::size_t> read = brain.state(bytes);
    EXPECT_TRUE(read.outcome) << read.outcome.message();
    return bytes;
  }
};

TEST_F(StateTest, ArraysFollowEachOther) {
  add(paid(1));
  std::uint64_t end = 0;
  std::uint32_t count = 0;
  bool has_weights = false;
  for (;; ++count) {
    const Made<imp_state_array> array = brain.state_array(count);
    if (array.outcome.code() == Code::not_found) break;
    ASSERT_TRUE(array) << array.outcome.message();
    EXPECT_EQ(array->offset, end) << array->name;
    EXPECT_STRNE(array->name, "replay");
    end += 4 * array->count;
    has_weights = has_weights || array->is_integer == 0;
  }
  EXPECT_GT(count, 4u);
  EXPECT_TRUE(has_weights);
  EXPECT_EQ(brain.state().value, end);
}

// The state of one brain makes another one equal, and both then learn the same.
TEST_F(StateTest, MakesAnotherBrainEqual) {
  add(paid(1));
  play_until_update();
  ASSERT_WORKS(context.drain(60'000));
  const std::vector<std::byte> learned = state();
  const BrainHash hash = brain.hash().value;
  add(paid(2));
  EXPECT_NE(brain.hash().value, hash);
  ASSERT_WORKS(brain.set_state(learned));
  EXPECT_EQ(brain.hash().value, hash);
  EXPECT_EQ(state(), learned);
}

// Unlike brain_load it keeps the steps that wait for the next update.
TEST_F(StateTest, KeepsExperience) {
  add(paid(1));
  play_until_update();
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_WORKS(brain.set_state(state()));
  play_until_update();
  pass([] {});  // the counts follow
  const imp_brain_stats stats = brain.stats().value;
  EXPECT_EQ(stats.used_samples, 64u);
  EXPECT_EQ(stats.dropped_samples, 0u);
}

TEST_F(StateTest, RefusesWhileAStepIsUnderWay) {
  add(paid(1));
  std::vector<std::byte> bytes = state();
  play_until_update();
  const Made<std::size_t> read = brain.state(bytes);
  EXPECT_EQ(read.outcome.code(), Code::wrong_state);
  EXPECT_THAT(std::string(read.outcome.message()), HasSubstr("context_drain"));
  const Outcome written = brain.set_state(bytes);
  EXPECT_EQ(written.code(), Code::wrong_state);
  ASSERT_WORKS(context.drain(60'000));
  ASSERT_WORKS(brain.set_state(bytes));
}

TEST_F(StateTest, RefusesDamage) {
  add(paid(1));
  const BrainHash hash = brain.hash().value;
  std::vector<std::byte> bytes = state();
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data(), &nothing, sizeof nothing);
  const Outcome damaged = brain.set_state(bytes);
  EXPECT_EQ(damaged.code(), Code::invalid_argument);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(brain.state_array(0).value.name));
  bytes.pop_back();
  EXPECT_EQ(brain.set_state(bytes).code(), Code::invalid_argument);
  EXPECT_EQ(brain.hash().value, hash);
}

}  // namespace

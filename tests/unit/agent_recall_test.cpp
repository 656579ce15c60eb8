// Which remembered steps minibatches are drawn from, before and after a change of the game.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/learn/learners/recall.h"
#include "tests/reference/updates.h"

namespace imprint::agent {
namespace {

constexpr std::int64_t kBrains = 2, kArriving = 4, kBatch = 512, kCapacity = 5000;

class RecallTest : public ::testing::Test {
 protected:
  RecallTest() {
    spec.brain_count = kBrains;
    spec.batch_size = kBatch;
    spec.replay_capacity = kCapacity;
    recall.emplace(spec, change_epsilon, graph);
    recall->take_in(input("rewards", {kBrains, kArriving}),
                    input("there", {kBrains, kArriving}, DType::boolean), updates);
  }

  // Steps of brain 0, whose rewards are `reward(i)`; brain 1 always earns its own share of hits.
  void live(int steps, const std::function<double(int)>& reward) {
    for (int i = 0; i < steps; i += kArriving) {
      state["rewards"].assign(kBrains * kArriving, 0);
      state["there"].assign(kBrains * kArriving, 1);
      for (int k = 0; k < kArriving; ++k) {
        state["rewards"][static_cast<std::size_t>(k)] = reward(i + k);
        state["rewards"][static_cast<std::size_t>(kArriving + k)] = hit(0.8, total + i + k, 1);
      }
      reference::run_updates(updates, state);
    }
    total += steps;
  }
  static double hit(double share, int step, std::uint32_t stream) {
    return philox_uniform(static_cast<std::uint32_t>(step), stream, 1, 2, 3) < share ? 1 : -1;
  }
  double since(std::size_t brain) const { return state.at("since_change")[brain]; }

  std::vector<double> drawn(std::int32_t seed) {
    state["filled"].assign(kBrains, std::min<double>(total, kCapacity));
    state["generator"] = {static_cast<double>(seed), 0, 0, 0};
    return reference::evaluate(
        recall->draw(input("generator", {4}, DType::int32), input("filled", {kBrains}, DType::int32)), state);
  }

  BrainSpec spec;
  Variable change_epsilon = Variable::zeros("change_epsilon", {kBrains});
  LearnGraph graph;
  std::optional<Recall> recall;
  std::vector<Update> updates;
  reference::Bindings state;
  int total = 0;
};

TEST_F(RecallTest, AFallForGoodLeavesTheNewestSteps) {
  live(6000, [](int i) { return hit(0.8, i, 0); });
  EXPECT_EQ(since(0), kCapacity);
  live(200, [](int i) { return hit(0.2, i, 2); });
  EXPECT_LE(since(0), 200 + Recall::kNewest);
  EXPECT_GE(since(0), Recall::kNewest);
  EXPECT_EQ(since(1), kCapacity) << "the other brain's game is as before";
  const double kept = since(0);
  EXPECT_GT(state.at("change_epsilon")[0], 0.2);
  EXPECT_EQ(state.at("change_epsilon")[1], 0);
  live(3000, [](int i) { return hit(0.2, i, 3); });
  EXPECT_EQ(since(0), kept + 3000) << "once";
  EXPECT_EQ(state.at("change_epsilon")[0], 0);
}

TEST_F(RecallTest, ABetterGameForgetsNothing) {
  live(4000, [](int i) { return hit(0.1, i, 0); });
  live(4000, [](int i) { return hit(0.9, i, 2); });
  EXPECT_EQ(since(0), kCapacity);
}

TEST_F(RecallTest, NoiseAndWhatEachEpisodeBringsForgetNothing) {
  live(20000, [](int i) { return i % 200 < 60 ? -10.0 : -0.1; });
  EXPECT_EQ(since(0), kCapacity);
  EXPECT_EQ(since(1), kCapacity);
}

TEST_F(RecallTest, ConstantRewardsForgetNothing) {
  live(8000, [](int) { return 1.0; });
  live(400, [](int i) { return i == 30 ? 0.0 : 1.0; });
  EXPECT_EQ(since(0), kCapacity);
}

TEST_F(RecallTest, DrawsFromAllUntilTheGameChanges) {
  live(400, [](int i) { return hit(0.8, i, 0); });
  const std::vector<double> few = drawn(1);
  EXPECT_GE(*std::ranges::min_element(few), 0);
  EXPECT_LT(*std::ranges::max_element(few), 400);
  EXPECT_GT(*std::ranges::max_element(few), 390);
  live(6000, [](int i) { return hit(0.8, i, 0); });
  const std::vector<double> all = drawn(1);
  EXPECT_LT(*std::ranges::min_element(all), 30);
  EXPECT_GT(*std::ranges::max_element(all), kCapacity - 30);
}

// After 6,140 steps the ring's next row is 1,140, so the newest steps are those before it.
TEST_F(RecallTest, ThenDrawsFromTheNewestStepsAlone) {
  live(6000, [](int i) { return hit(0.8, i, 0); });
  live(140, [](int i) { return hit(0, i, 2); });
  const double newest = since(0);
  ASSERT_LT(newest, 300);
  const std::vector<double> rows = drawn(5);
  for (std::size_t i = 0; i < kBatch; ++i) {
    EXPECT_GE(rows[i], 1140 - newest);
    EXPECT_LT(rows[i], 1140);
  }
  EXPECT_GT(*std::max_element(rows.begin() + kBatch, rows.end()), 4000) << "the other brain forgets nothing";
}

}  // namespace
}  // namespace imprint::agent

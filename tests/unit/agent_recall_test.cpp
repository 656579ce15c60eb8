// Which remembered samples minibatches are drawn from: steps before and after a change of the game, and
// words.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "compute/base/philox.h"
#include "plugin/agent/learn/learners/recall.h"
#include "plugin/agent/learn/samples/replay_memory.h"
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

// ---- learners of words and demonstrations ----

// Rows that brains with `filled` samples each draw, whose next samples go to `next`.
std::vector<double> drawn_of_words(const BrainSpec& spec, std::vector<double> filled,
                                   std::vector<double> next) {
  const std::int64_t brains = spec.brain_count;
  const ReplayMemory memory(spec);
  reference::Bindings inputs{
      {"generator", {5, 0, 0, 0}}, {"filled", std::move(filled)}, {"next", std::move(next)}};
  return reference::evaluate(
      memory.draw_rows(input("generator", {4}, DType::int32), input("filled", {brains}, DType::int32),
                       input("next", {brains}, DType::int32)),
      inputs);
}

BrainSpec spec_of_words(std::uint32_t brains) {
  BrainSpec spec;
  spec.observation.count = 2;
  spec.action.branch_sizes = {3};
  spec.learner = LearnerKind::feedback;
  spec.brain_count = brains;
  spec.batch_size = 32;
  spec.replay_capacity = 4096;
  return spec;
}

// Twenty words after thousands of others: of rows drawn from all, one minibatch in six would hold one of
// them.
TEST(WordsTest, AnEighthOfTheRowsIsFromTheNewestSamples) {
  const BrainSpec spec = spec_of_words(3);
  // The ring of brain 0 has begun again, that of brain 1 has not, and brain 2 remembers less.
  const std::vector<double> rows = drawn_of_words(spec, {4096, 1000, 512}, {20, 1000, 512});
  const auto in_newest = [&](std::size_t brain, int next) {
    int count = 0;
    for (std::size_t i = 0; i < spec.batch_size; ++i) {
      const int row = static_cast<int>(rows[brain * spec.batch_size + i]);
      EXPECT_GE(row, 0);
      EXPECT_LT(row, 4096);
      const bool is_newest = (next - 1 - row + 4096) % 4096 < ReplayMemory::kNewest;
      if (i < spec.batch_size / ReplayMemory::kNewestPart) EXPECT_TRUE(is_newest) << brain << ": " << row;
      count += is_newest ? 1 : 0;
    }
    return count;
  };
  EXPECT_LT(in_newest(0, 20), 8) << "most rows are from all";
  EXPECT_LT(in_newest(1, 1000), 12);
  for (std::size_t i = 0; i < spec.batch_size; ++i) EXPECT_LT(rows[2 * spec.batch_size + i], 512);
}

// The newest of few samples are drawn that often anyway.
TEST(WordsTest, AShortMemoryIsDrawnFromAlike) {
  const BrainSpec spec = spec_of_words(1);
  EXPECT_EQ(drawn_of_words(spec, {512}, {512}), drawn_of_words(spec, {512}, {7}));
  EXPECT_NE(drawn_of_words(spec, {513}, {513}), drawn_of_words(spec, {513}, {7}));
}

}  // namespace
}  // namespace imprint::agent

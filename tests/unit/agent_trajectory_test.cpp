// Trajectories, and the random numbers that choose actions.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "plugin/agent/decide/noise.h"
#include "plugin/agent/learn/samples/reward_sparsity.h"
#include "plugin/agent/learn/samples/trajectory.h"

namespace imprint::agent {
namespace {

Choice choice(std::uint64_t action, float seen) {
  Choice made;
  made.action = action;
  made.observation = {seen};
  return made;
}

constexpr double kReach = 1.4;

// The oldest step, once it is complete; else null.
const Transition* settled(Trajectory& trajectory, double time_s, double reach_s) {
  return trajectory.returned(time_s, reach_s, 1, 1).first;
}

TEST(Trajectory, AStepIsCompleteWhenTheNextActionBeginsOutOfReachOfPraise) {
  Trajectory trajectory;
  trajectory.act(choice(1, 10), 0);
  EXPECT_FALSE(settled(trajectory, 100, kReach)) << "its result is not known yet";
  trajectory.act(choice(2, 20), 1);
  EXPECT_FALSE(settled(trajectory, 1.4, kReach));
  trajectory.reward(1, 0.5f);
  trajectory.reward(1, 0.25f);
  trajectory.reward(2, 7);
  const Transition* step = settled(trajectory, 1.41, kReach);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->choice.action, 1u);
  EXPECT_EQ(step->reward, 0.75f);
  EXPECT_TRUE(step->begins);
  EXPECT_FALSE(step->terminated);
  EXPECT_EQ(step->next.observation, std::vector<float>{20});
  trajectory.pop();
  EXPECT_FALSE(settled(trajectory, 100, kReach));
  trajectory.reward(1, 1);  // too late
  trajectory.act(choice(3, 30), 2);
  step = settled(trajectory, 100, kReach);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->reward, 7);
  EXPECT_FALSE(step->begins);
}

TEST(Trajectory, RewardsAreForTheActionUnderWay) {
  Trajectory trajectory;
  trajectory.reward_newest(1);
  trajectory.act(choice(1, 10), 0);
  trajectory.reward_newest(2);
  trajectory.act(choice(2, 20), 1);
  trajectory.reward_newest(4);
  EXPECT_EQ(settled(trajectory, 2, kReach)->reward, 2);
  trajectory.end(EpisodeEnd::terminated, nullptr);
  trajectory.reward_newest(8);
  trajectory.reward(2, 8);
  trajectory.pop();
  EXPECT_EQ(settled(trajectory, 2, kReach)->reward, 4) << "no step is open between episodes";
}

TEST(Trajectory, AReturnSpansSeveralStepsAndNoEpisodesEnd) {
  Trajectory trajectory;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    trajectory.act(choice(i, static_cast<float>(10 * i)), static_cast<double>(i));
    trajectory.reward_newest(static_cast<float>(i));
  }
  const Trajectory::Return found = trajectory.returned(100, 0, 3, 0.5f);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->choice.action, 1u);
  EXPECT_EQ(found.last->choice.action, 3u);
  EXPECT_EQ(found.last->next.observation, std::vector<float>{40});
  EXPECT_EQ(found.steps, 3u);
  EXPECT_EQ(found.reward, 1 + 0.5f * 2 + 0.25f * 3);
  trajectory.pop();
  EXPECT_FALSE(trajectory.returned(100, 0, 3, 0.5f).first) << "the fourth step's result is not known";
  trajectory.end(EpisodeEnd::terminated, nullptr);
  trajectory.act(choice(5, 50), 5);
  EXPECT_EQ(trajectory.returned(100, 0, 3, 0.5f).reward, 2 + 0.5f * 3 + 0.25f * 4);
  trajectory.pop();
  trajectory.pop();
  const Trajectory::Return last = trajectory.returned(100, 0, 3, 0.5f);
  ASSERT_TRUE(last.first);
  EXPECT_EQ(last.steps, 1u);
  EXPECT_EQ(last.reward, 4);
  EXPECT_TRUE(last.last->terminated);
}

TEST(Trajectory, AnEndSettlesAllOfItsEpisode) {
  Trajectory trajectory;
  trajectory.act(choice(1, 10), 0);
  trajectory.act(choice(2, 20), 0.1);
  trajectory.end(EpisodeEnd::terminated, nullptr);
  trajectory.act(choice(3, 30), 0.2);
  const Transition* step = settled(trajectory, 0.2, kReach);
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->terminated);
  trajectory.pop();
  step = settled(trajectory, 0.2, kReach);
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->terminated);
  trajectory.pop();
  EXPECT_FALSE(settled(trajectory, 0.2, kReach));
  trajectory.act(choice(4, 40), 0.3);
  EXPECT_TRUE(settled(trajectory, 10, kReach)->begins);
}

TEST(Trajectory, ATruncatedEndContinuesFromTheLastObservation) {
  Trajectory trajectory;
  const Choice last = choice(0, 99);
  trajectory.act(choice(1, 10), 0);
  trajectory.end(EpisodeEnd::truncated, &last);
  const Transition* step = settled(trajectory, 0, kReach);
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->terminated);
  EXPECT_EQ(step->next.observation, std::vector<float>{99});
  trajectory.pop();
  trajectory.act(choice(2, 20), 1);
  trajectory.act(choice(3, 30), 1);
  trajectory.end(EpisodeEnd::truncated, nullptr);
  EXPECT_EQ(settled(trajectory, 1, kReach)->choice.action, 2u);
  trajectory.pop();
  EXPECT_FALSE(settled(trajectory, 100, kReach)) << "the last step has no result";
}

TEST(Trajectory, WhereTheChainIsCutTheNewestIsDropped) {
  Trajectory trajectory;
  trajectory.act(choice(1, 10), 0);
  trajectory.act(choice(2, 20), 1);
  trajectory.cut();
  trajectory.act(choice(3, 30), 2);
  trajectory.act(choice(4, 40), 3);
  EXPECT_EQ(settled(trajectory, 100, kReach)->choice.action, 1u);
  trajectory.pop();
  const Transition* step = settled(trajectory, 100, kReach);
  EXPECT_EQ(step->choice.action, 3u);
  EXPECT_TRUE(step->begins);
  trajectory.forget();
  EXPECT_FALSE(settled(trajectory, 100, kReach));
}

TEST(Trajectory, DoesNotGrowWhereTimeStandsStill) {
  Trajectory trajectory;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    trajectory.act(choice(i, 0), 5);
    while (const Transition* step = settled(trajectory, 5, kReach)) {
      EXPECT_GE(i, step->choice.action + AgentSlot::kHistory);
      trajectory.pop();
    }
  }
}

TEST(Draws, TheHighestOfLogitsAndGumbelNoiseIsADrawFromTheirSoftmax) {
  const std::array<double, 5> logits = {0, 1, 2, -1, 0.5};
  std::array<int, 5> drawn{};
  constexpr int kDraws = 40'000;
  for (std::uint64_t decision = 0; decision < kDraws; ++decision) {
    std::array<float, 5> noise;
    fill_gumbel(noise, {3, 1, decision});
    std::size_t best = 0;
    for (std::size_t i = 1; i < 5; ++i)
      if (logits[i] + noise[i] > logits[best] + noise[best]) best = i;
    ++drawn[best];
  }
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (std::size_t i = 0; i < 5; ++i) {
    const double p = std::exp(logits[i]) / sum;
    EXPECT_NEAR(drawn[i] / double{kDraws}, p, 4 * std::sqrt(p * (1 - p) / kDraws)) << i;
  }
}

TEST(Draws, SlowNoiseGlidesAndEachDrawIsStillFromTheSoftmax) {
  const std::array<double, 3> logits = {0, 1, -0.5};
  std::array<int, 3> drawn{};
  std::array<float, 3> noise{};
  constexpr int kDraws = 200'000;
  std::size_t before = 0;
  int kept = 0;
  for (std::uint64_t decision = 0; decision < kDraws; ++decision) {
    fill_gumbel(noise, {.brain_seed = 3, .agent = 1, .decision = decision, .slow = true});
    std::size_t best = 0;
    for (std::size_t i = 1; i < 3; ++i)
      if (logits[i] + noise[i] > logits[best] + noise[best]) best = i;
    ++drawn[best];
    kept += best == before ? 1 : 0;
    before = best;
  }
  double sum = 0, twice = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (std::size_t i = 0; i < 3; ++i) {
    const double p = std::exp(logits[i]) / sum;
    twice += p * p;
    EXPECT_NEAR(drawn[i] / double{kDraws}, p, 0.015) << i;  // neighbours are not independent
  }
  EXPECT_GT(kept / double{kDraws}, twice + 0.2);
}

TEST(Draws, SlowNoiseHasItsDeviationAndBelongsToItsAgent) {
  double squares = 0, steps = 0, others = 0;
  std::array<float, 40> last{}, noise{}, other{};
  constexpr int kDraws = 20'000;
  for (std::uint64_t decision = 0; decision < kDraws; ++decision) {
    fill_noise(noise, 2, {.brain_seed = 3, .agent = 1, .decision = decision, .slow = true});
    fill_noise(other, 2, {.brain_seed = 3, .agent = 2, .decision = decision, .slow = true});
    const double now = double{noise[37]}, step = now - double{last[37]};
    squares += now * now;
    others += now * double{other[37]};
    steps += step * step;
    last = noise;
  }
  EXPECT_NEAR(squares / kDraws, 4, 0.4);
  EXPECT_NEAR(others / kDraws, 0, 0.4);
  EXPECT_LT(steps / kDraws, 2) << "of independent numbers 8";
}

TEST(RewardSparsity, IsSparseWhereRewardsAreEqualAndEpisodesDoNotTerminate) {
  const auto after = [](int steps, int every, bool by_end, float reward = -1) {
    RewardSparsity sparsity;
    for (int i = 1; i <= steps; ++i) {
      const bool told = every > 0 && i % every == 0;
      sparsity.add(told && !by_end ? reward + 1 : reward, told && by_end);
    }
    return sparsity.is_sparse();
  };
  EXPECT_FALSE(after(500, 0, false)) << "too early to tell";
  EXPECT_TRUE(after(600, 0, false));
  EXPECT_FALSE(after(600, 100, false));
  EXPECT_FALSE(after(600, 100, true));
  EXPECT_TRUE(after(50'000, 600, true));
  EXPECT_TRUE(after(600, 0, false, 0));
  EXPECT_FALSE(after(600, 0, false, 1)) << "it balances, and wants no news";
}

TEST(Draws, ASlowRandomChoiceLastsAndIsAsFrequent) {
  const std::array<std::int32_t, 3> allowed = {1, 1, 1};
  const auto choice = [&](std::uint64_t decision) {
    std::array<float, 3> noise{};
    add_random_choice(noise, allowed, 0.3f, {3, 1, decision, 0, true});
    return std::ranges::max(noise) > 1 ? std::ranges::max_element(noise) - noise.begin() : -1;
  };
  constexpr int kDraws = 40'000;
  int random = 0, stays = 0;
  for (std::uint64_t decision = 0; decision < kDraws; ++decision) {
    random += choice(decision) >= 0 ? 1 : 0;
    stays += choice(decision) == choice(decision + 1) ? 1 : 0;
  }
  EXPECT_NEAR(random / double{kDraws}, 0.3, 0.03);
  EXPECT_GT(stays / double{kDraws}, 0.9) << "of independent draws 0.52";
}

TEST(Draws, ARandomChoiceIsOneOfTheOpenOnes) {
  const std::array<std::int32_t, 6> allowed = {0, 1, 0, 1, 1, 0};
  std::array<int, 6> raised{};
  int none = 0;
  constexpr int kDraws = 20'000;
  for (std::uint64_t decision = 0; decision < kDraws; ++decision) {
    std::array<float, 6> noise{};
    add_random_choice(noise, allowed, 0.3f, {3, 1, decision});
    int found = 0;
    for (std::size_t i = 0; i < 6; ++i)
      if (noise[i] > 1e6f) ++raised[i], ++found;
    ASSERT_LE(found, 1);
    none += found == 0;
  }
  EXPECT_NEAR(none / double{kDraws}, 0.7, 0.015);
  for (const std::size_t i : {1, 3, 4}) EXPECT_NEAR(raised[i] / double{kDraws}, 0.1, 0.01);
  EXPECT_EQ(raised[0] + raised[2] + raised[5], 0);
  std::array<float, 6> noise{};
  add_random_choice(noise, allowed, 0, {3, 1, 7});
  for (const float value : noise) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace imprint::agent

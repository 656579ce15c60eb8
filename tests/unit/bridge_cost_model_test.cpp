#include "engine-bridge/frame/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace imprint::bridge {
namespace {

TEST(CostModel, GuessSpreadsTheWorkOverThePieces) {
  const DeviceRates rates{2, 1000, 10000};
  const ProgramCost cost =
      ProgramCost::guess({4, 8000, 10000}, rates);  // 8 us of memory bound the 1 us of arithmetic
  ASSERT_EQ(cost.piece_count(), 4u);
  EXPECT_FLOAT_EQ(cost.range_us(0, 1), 4);
  EXPECT_FLOAT_EQ(cost.range_us(0, 4), 16);
  EXPECT_FLOAT_EQ(cost.range_us(2, 2), 0);
}

TEST(CostModel, NothingToDoCostsNothing) {
  const ProgramCost cost = ProgramCost::guess({0, 100, 100}, {});
  EXPECT_EQ(cost.piece_count(), 0u);
  EXPECT_EQ(cost.range_us(0, 0), 0);
  EXPECT_EQ(cost.fit(0, 0, 1000), 0u);
}

TEST(CostModel, EveryKindOfDeviceHasRates) {
  for (const DeviceKind kind : {DeviceKind::discrete, DeviceKind::integrated, DeviceKind::software}) {
    const DeviceRates rates = rates_of(kind);
    EXPECT_GT(rates.dispatch_us, 0);
    EXPECT_GT(rates.bytes_per_us, 0);
    EXPECT_GT(rates.flops_per_us, 0);
  }
}

TEST(CostModel, FitCountsWholePiecesOnly) {
  const float us[] = {10, 20, 30, 40};
  const ProgramCost cost = ProgramCost::measured(us);
  EXPECT_EQ(cost.fit(0, 4, 9.9f), 0u);
  EXPECT_EQ(cost.fit(0, 4, 10), 1u);
  EXPECT_EQ(cost.fit(0, 4, 59), 2u);
  EXPECT_EQ(cost.fit(0, 4, 1e9f), 4u);
  EXPECT_EQ(cost.fit(0, 2, 1e9f), 2u);
  EXPECT_EQ(cost.fit(1, 4, 50), 2u);
  EXPECT_EQ(cost.fit(3, 4, 39), 0u);
  EXPECT_EQ(cost.fit(4, 4, 100), 0u);
  EXPECT_EQ(cost.fit(0, 4, -5), 0u);
}

TEST(CostModel, FitAgreesWithRange) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> us(1 + random() % 30);
    for (float& piece : us) piece = static_cast<float>(random() % 1000) / 7.0f;
    const ProgramCost cost = ProgramCost::measured(us);
    const std::uint32_t begin = random() % us.size();
    const float budget = static_cast<float>(random() % 3000);
    const auto end = static_cast<std::uint32_t>(us.size());
    const std::uint32_t count = cost.fit(begin, end, budget);
    EXPECT_LE(cost.range_us(begin, begin + count), budget);
    if (begin + count < end) {
      EXPECT_GT(cost.range_us(begin, begin + count + 1), budget);
    }
  }
}

TEST(CostModel, AGuessTakesTheFirstAnswer) {
  ProgramCost cost = ProgramCost::guess({10, 0, 0}, {1, 1, 1});
  cost.correct(cost.range_us(0, 10), 70, 1);
  EXPECT_NEAR(cost.range_us(0, 10), 70, 0.01);
}

TEST(CostModel, ConvergesToTheTimesOfFrames) {
  const float us[] = {10, 10};
  ProgramCost cost = ProgramCost::measured(us);
  for (int frame = 0; frame < 60; ++frame) cost.correct(cost.range_us(0, 2), 30, 1);
  EXPECT_NEAR(cost.range_us(0, 2), 30, 0.1);
}

TEST(CostModel, OneOutlierMovesAMeasuredModelLittle) {
  const float us[] = {10, 10};
  ProgramCost cost = ProgramCost::measured(us);
  cost.correct(20, 20000, 1);
  EXPECT_LT(cost.range_us(0, 2), 30);
}

TEST(CostModel, SharesDivideTheCorrection) {
  const float us[] = {10};
  ProgramCost large = ProgramCost::measured(us), small = ProgramCost::measured(us);
  large.correct(20, 40, 0.9f);
  small.correct(20, 40, 0.1f);
  EXPECT_GT(large.range_us(0, 1), small.range_us(0, 1));
  EXPECT_GT(small.range_us(0, 1), 10);
}

TEST(CostModel, IgnoresTimesThatSayNothing) {
  const float us[] = {10};
  ProgramCost cost = ProgramCost::measured(us);
  cost.correct(0, 10, 1);
  cost.correct(10, 0, 1);
  cost.correct(10, 10, 0);
  EXPECT_FLOAT_EQ(cost.range_us(0, 1), 10);
}

TEST(CostModel, AMeasuredZeroIsNotFree) {
  const float us[] = {0, 0, 0};
  EXPECT_GT(ProgramCost::measured(us).range_us(0, 3), 0);
}

}  // namespace
}  // namespace imprint::bridge

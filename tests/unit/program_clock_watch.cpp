// When a GPU's clock counts as up, by times of the same arithmetic.

#include <gtest/gtest.h>

#include <chrono>

#include "compute/program/clock_probe.h"

namespace imprint {
namespace {

using std::chrono::milliseconds;

class ClockWatchTest : public ::testing::Test {
 protected:
  // Of a clock that runs at this share of its highest: arithmetic that takes 10 us there.
  bool asks(double share) { return watch_.is_up(10 / share, now_ += milliseconds(10)); }
  // Milliseconds until it is up, asked all the time; -1: not within five seconds.
  int asks_until_up(double share) {
    for (int taken = 10; taken <= 5000; taken += 10)
      if (asks(share)) return taken;
    return -1;
  }
  void pauses(milliseconds time) { now_ += time; }

 private:
  ClockWatch watch_;
  ClockWatch::Time now_{};
};

TEST_F(ClockWatchTest, StaysAtFirstToSeeWhetherTheClockRises) {
  for (const double share : {0.2, 0.3, 0.5, 0.65})  // a step of 0.9 s each
    for (int i = 0; i < 90; ++i) EXPECT_FALSE(asks(share)) << share;
  EXPECT_GE(asks_until_up(1.0), 900);
  EXPECT_TRUE(asks(1.0));
}

TEST_F(ClockWatchTest, SeesAFallAndTheRiseBehindIt) {
  ASSERT_GT(asks_until_up(1.0), 0);
  pauses(milliseconds(3000));
  EXPECT_FALSE(asks(0.2));
  EXPECT_FALSE(asks(0.65));
  EXPECT_TRUE(asks(1.0));
}

TEST_F(ClockWatchTest, ATenthMoreOrLessIsNoStep) {
  ASSERT_GT(asks_until_up(1.0), 0);
  for (const double share : {0.95, 1.05, 0.9, 1.0}) EXPECT_TRUE(asks(share)) << share;
}

TEST_F(ClockWatchTest, ALowClockIsNotTakenForTheHighestBecauseNobodyAsked) {
  EXPECT_FALSE(asks(0.2));
  pauses(milliseconds(5000));
  EXPECT_FALSE(asks(0.2));
  EXPECT_FALSE(asks(1.0));
  EXPECT_GE(asks_until_up(1.0), 900);
  EXPECT_FALSE(asks(0.2));
}

}  // namespace
}  // namespace imprint

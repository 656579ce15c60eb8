// Detects when a GPU's clock has risen, from times of the same arithmetic.

#include <gtest/gtest.h>

#include <chrono>

#include "compute/tuning/clock_probe.h"

namespace imprint {

using namespace tuning;

namespace {

using std::chrono::milliseconds;

class ClockWatchTest : public ::testing::Test {
 protected:
  // Time of arithmetic that takes 10 us at full clock, for a clock at this share.
  bool asks(double share, milliseconds after = milliseconds(10)) {
    return watch_.is_up(10 / share, now_ += after);
  }
  // Milliseconds until the clock is up, polled all the time; -1: not within five seconds.
  int asks_until_up(double share) {
    for (int taken = 10; taken <= 5000; taken += 10)
      if (asks(share)) return taken;
    return -1;
  }
  void pauses(milliseconds time) { watch_.resume(now_ += time); }

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

TEST_F(ClockWatchTest, SeesAFallAndTheRiseAfterIt) {
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

TEST_F(ClockWatchTest, AClockThatRisesALittleAtATimeRises) {
  for (double share = 0.2; share < 1; share *= 1.04)
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(asks(share)) << share;
  EXPECT_GT(asks_until_up(1.0), 0);
}

TEST_F(ClockWatchTest, WaitsAgainForAClockAboveTheHighest) {
  ASSERT_GT(asks_until_up(0.5), 0);  // at a level where another limit held it
  EXPECT_FALSE(asks(0.65));
  EXPECT_FALSE(asks(1.0));
  EXPECT_GE(asks_until_up(1.0), 900);
}

TEST_F(ClockWatchTest, AClockThatIsHeldDownIsNotWaitedForEachTime) {
  ASSERT_GT(asks_until_up(1.0), 0);
  pauses(milliseconds(3000));
  EXPECT_GE(asks_until_up(0.7), 900);
  pauses(milliseconds(3000));
  EXPECT_TRUE(asks(0.7));
  EXPECT_FALSE(asks(1.0));
  EXPECT_GE(asks_until_up(1.0), 900);
}

// Each time is measured in less than one step of the clock.
TEST_F(ClockWatchTest, AClockThatIsHeldDownIsSeenInPieces) {
  ASSERT_GT(asks_until_up(1.0), 0);
  int up = 0;
  for (int piece = 0; piece < 40; ++piece) {
    pauses(milliseconds(3000));
    for (int i = 0; i < 4; ++i) up += asks(0.7);
  }
  EXPECT_GE(up, 50);
}

TEST_F(ClockWatchTest, TimesThatTakeLongAreNoPauses) {
  bool is_up = false;
  for (int i = 0; i < 20 && !is_up; ++i) is_up = asks(1.0, milliseconds(150));
  EXPECT_TRUE(is_up);
}

TEST_F(ClockWatchTest, APauseInPollingDoesNotMakeALowClockTheHighest) {
  EXPECT_FALSE(asks(0.2));
  pauses(milliseconds(5000));
  EXPECT_FALSE(asks(0.2));
  EXPECT_FALSE(asks(1.0));
  EXPECT_GE(asks_until_up(1.0), 900);
  EXPECT_FALSE(asks(0.2));
}

}  // namespace
}  // namespace imprint

#include "engine-bridge/frame/governor.h"

#include <gtest/gtest.h>

namespace imprint::bridge {
namespace {

Governor governed(Preference preference, std::uint32_t frame_us = 10000) {
  Governor governor;
  governor.set(preference, frame_us);
  return governor;
}

TEST(T9Governor, TakesNoNoticeWithoutAMeasureOrATarget) {
  Governor governor = governed(Preference::graphics, 0);
  governor.measured(99999);
  EXPECT_EQ(governor.share(), 1);
  governor.set(Preference::graphics, 10000);
  governor.measured(0);
  EXPECT_EQ(governor.share(), 1);
}

TEST(T9Governor, GraphicsFirstStopsAtOnceAndComesBackSlowly) {
  Governor governor = governed(Preference::graphics);
  governor.measured(10001);
  EXPECT_EQ(governor.share(), 0);
  governor.measured(9500);
  EXPECT_EQ(governor.share(), 0) << "just in time is no room";
  float before = 0;
  for (int frame = 0; frame < 15; ++frame) {
    governor.measured(8000);
    EXPECT_GT(governor.share(), before);
    EXPECT_LT(governor.share(), 1);
    before = governor.share();
  }
  governor.measured(8000);
  EXPECT_EQ(governor.share(), 1);
}

TEST(T9Governor, BalanceGivesWayToAQuarter) {
  Governor governor = governed(Preference::balanced);
  float before = 1;
  for (int frame = 0; frame < 4; ++frame) {
    governor.measured(12000);
    EXPECT_LT(governor.share(), before);
    before = governor.share();
  }
  for (int frame = 0; frame < 20; ++frame) governor.measured(12000);
  EXPECT_EQ(governor.share(), 0.25f);
}

TEST(T9Governor, ComputeKeepsItsBudget) {
  Governor governor = governed(Preference::compute);
  governor.measured(99999);
  EXPECT_EQ(governor.share(), 1);
}

TEST(T9Governor, ALimitThatIsTurnedOffNoLongerHolds) {
  Governor governor = governed(Preference::graphics);
  governor.measured(20000);
  ASSERT_EQ(governor.share(), 0);
  governor.set(Preference::graphics, 0);
  EXPECT_EQ(governor.share(), 1);
}

}  // namespace
}  // namespace imprint::bridge

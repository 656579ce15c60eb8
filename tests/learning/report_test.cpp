// The report's verdict on a game.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "samples/pet/report.h"

namespace pet {
namespace {

TEST(Report, HoldsNinetyPercentOnlyWithTwoChecksInARow) {
  const auto checks = [](std::vector<float> values) {
    std::vector<Check> made;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Check check;
      check.seconds = 15.0 * static_cast<double>(i);
      check.success = values[i];
      made.push_back(check);
    }
    return made;
  };
  EXPECT_FALSE(held_90(checks({0.1f, 0.95f, 0.8f, 0.95f})));
  EXPECT_EQ(held_90(checks({0.1f, 0.95f, 0.9f})), 30.0);
  // The last check comes when the game ends, possibly soon after the previous one.
  std::vector<Check> late = checks({0.1f, 0.2f, 0.95f, 0.95f});
  late[3].seconds = 32.0;
  EXPECT_FALSE(held_90(late));
  late.push_back(late.back());
  late.back().seconds = 45.0;
  EXPECT_EQ(held_90(late), 45.0);
  late[3].success = 0.5f;
  EXPECT_FALSE(held_90(late));
  EXPECT_EQ(success_at(checks({0.1f, 0.5f, 0.9f}), 29.0), 0.5f);
  EXPECT_FALSE(success_at({}, 10.0));
  EXPECT_EQ(spread({3.0f, 1.0f, 2.0f}).median, 2.0);
  EXPECT_EQ(spread({3.0f, 1.0f, 2.0f}).frames, 3u);
  EXPECT_EQ(spread({}).p99, 0.0);
}

TEST(Report, JudgesLearningByTheTeacher) {
  Report report;
  report.teacher = TeacherKind::demo;
  report.simulated_seconds = 180.0;
  report.minibatches = 100;
  report.final_success = 0.5f;
  EXPECT_EQ(learned(report), false);
  report.final_success = 0.9f;
  EXPECT_EQ(learned(report), true);
  // Success without a minibatch was not learned here.
  report.minibatches = 0;
  EXPECT_EQ(learned(report), false);
  EXPECT_NE(to_json(report).find("\"learned\": false"), std::string::npos);
  for (const TeacherKind nobody : {TeacherKind::off, TeacherKind::none}) {
    report.teacher = nobody;
    EXPECT_FALSE(learned(report).has_value());
    EXPECT_FALSE(lesson_seconds(nobody).has_value());
    EXPECT_NE(to_json(report).find("\"learned\": null"), std::string::npos);
  }
}

TEST(Report, DoesNotJudgeASessionTooShortToLearnIn) {
  Report report;
  report.minibatches = 20;
  for (const TeacherKind teacher : {TeacherKind::demo, TeacherKind::praise, TeacherKind::careless}) {
    report.teacher = teacher;
    const std::optional<double> needed = lesson_seconds(teacher);
    ASSERT_TRUE(needed.has_value());
    report.simulated_seconds = *needed - 1.0;
    report.final_success = 0.2f;
    EXPECT_FALSE(learned(report).has_value());
    report.final_success = 0.95f;
    EXPECT_EQ(learned(report), true) << "learned sooner";
    report.simulated_seconds = *needed;
    report.final_success = 0.2f;
    EXPECT_EQ(learned(report), false);
  }
}

}  // namespace
}  // namespace pet

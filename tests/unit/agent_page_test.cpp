// The learner that plugin/docs/adding-a-learner.md adds: compiled from the page.

#include <gtest/gtest.h>

#include <vector>

#include "plugin/agent/learn/echo.h"

namespace imprint::agent {
namespace {

TEST(PageLearner, LearnsFromPraiseAndNotFromScolding) {
  BrainSpec spec;
  spec.observation.count = 4;
  spec.action.branch_sizes = {3};
  const Learner& echo = echo_learner();
  EXPECT_TRUE(echo.check_actions(spec).ok());
  const SampleLayout layout = echo.layout(spec);
  std::vector<float> row(layout.width, -1.0f);
  echo.label(row, layout, 1.0f, 2.0f, Meaning::word);
  EXPECT_EQ(row[layout.weight], 2.0f);
  echo.label(row, layout, -1.0f, 2.0f, Meaning::word);
  EXPECT_EQ(row[layout.weight], 0.0f);
  spec.action.branch_sizes = {3, 2};
  EXPECT_FALSE(echo.check_actions(spec).ok());
}

}  // namespace
}  // namespace imprint::agent

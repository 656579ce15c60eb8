#include <gtest/gtest.h>

#include "compute/kernels/index_expression.h"

namespace imprint {

using namespace kernels;

namespace {

const IndexExpression row("row"), four("f", 4);

TEST(IndexExpression, KeepsItsConstantApart) {
  EXPECT_EQ((row * 64 + 3 + row + 5).str(), "(((row * 64) + row) + 8)");
  EXPECT_EQ((row + 5 - 5).str(), "row");
  EXPECT_EQ((row - 2).str(), "(row - 2)");
  EXPECT_EQ(((row + 1) * 8).str(), "((row * 8) + 8)");
  EXPECT_TRUE((row * 0).is_zero());
  EXPECT_TRUE((row + 7).is_simple());
  EXPECT_FALSE((row * 2).is_simple());
}

TEST(IndexExpression, KnowsItsDivisors) {
  EXPECT_EQ((four * 3).multiple, 12);
  EXPECT_EQ((four * 3 + row * 8).multiple, 4);
  EXPECT_EQ((four + row).multiple, 1);
  EXPECT_EQ(((four * 3 + 6) % 4).str(), "2");
  EXPECT_EQ(((four * 3 + 6) / 4).str(), "(((f * 3) >> 2) + 1)");
  EXPECT_EQ((four % 8).multiple, 4);
  EXPECT_EQ(((four + 6) % 8).str(), "(((f + 4) & 7) + 2)");
  EXPECT_EQ(((four + 6) / 8).str(), "((f + 4) >> 3)");
}

TEST(IndexExpression, DividesAsFloorWhereTheConstantIsNegative) {
  EXPECT_EQ(((four - 1) % 4).str(), "3");
  EXPECT_EQ(((four - 1) / 4).str(), "((f >> 2) - 1)");
}

TEST(IndexExpression, ShiftsAndMasksForPowersOfTwo) {
  EXPECT_EQ((row / 16).str(), "(row >> 4)");
  EXPECT_EQ((row % 16).str(), "(row & 15)");
  EXPECT_EQ((row / 9).str(), "(row / 9)");
  EXPECT_EQ(((row + 1) % 9).str(), "((row + 1) % 9)");
}

}  // namespace
}  // namespace imprint

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "compute/base/result.h"

namespace imprint {
namespace {

Result<std::pair<int, std::string>> pair_of(int number) {
  if (number < 0) return make_error(ErrorCode::invalid_argument, "number: found -1, expected 0 or more");
  return std::pair(number, std::string("text"));
}

Result<int> sum_of(int number) {
  IMPRINT_ASSIGN(auto [first, text], pair_of(number));
  IMPRINT_ASSIGN(const auto pair, pair_of(first + 1));
  IMPRINT_ASSIGN(const auto [a, b, c], (Result<std::tuple<int, int, int>>(std::tuple(1, 2, 3))));
  IMPRINT_ASSIGN(const auto [d, e, f, g], (Result<std::array<int, 4>>(std::array{4, 5, 6, 7})));
  IMPRINT_ASSIGN(first, Result<int>(pair.first));
  return first + static_cast<int>(text.size()) + a + b + c + d + e + f + g;
}

TEST(ResultMacros, AssignsDeclarationsVariablesAndBindings) {
  const Result<int> sum = sum_of(10);
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, 11 + 4 + 28);
}

TEST(ResultMacros, ReturnsTheErrorOfABinding) {
  const Result<int> sum = sum_of(-1);
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace imprint

// The mean of brains, in two processes: run by mpirun -np 2.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tools/studio/group.h"
#include "tools/studio/state_mean.h"

namespace imprint::studio {
namespace {

// weights [2], x.mean [1], x.variance [1], steps [1]
std::vector<StateArray> arrays() {
  return {{"weights", 0, 2, false},
          {"x.mean", 8, 1, false},
          {"x.variance", 12, 1, false},
          {"steps", 16, 1, true}};
}

std::vector<std::byte> state_of(float first, float second, float mean, float variance, std::int32_t steps) {
  std::vector<std::byte> state(20);
  const float floats[] = {first, second, mean, variance};
  std::memcpy(state.data(), floats, sizeof floats);
  std::memcpy(state.data() + 16, &steps, sizeof steps);
  return state;
}

class MeanTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(group.ranks(), 2u) << "run this by mpirun -np 2"; }
  Group& group = Group::all();
  const bool first = group.rank() == 0;
};

// The samples 1, 3 and 5, 7: variances 1 and 1, together 5.
TEST_F(MeanTest, IsThatOfAllRanks) {
  std::vector<std::byte> state = first ? state_of(1, -4, 2, 1, 7) : state_of(3, 8, 6, 1, 5);
  StateMean(arrays()).average(state, true, 2, group);
  EXPECT_EQ(state, state_of(2, 2, 4, 5, 7));
}

// A rank whose numbers are not finite takes the others' mean.
TEST_F(MeanTest, LeavesARankOut) {
  std::vector<std::byte> state = first ? state_of(1, -4, 2, 1, 7) : state_of(NAN, 8, INFINITY, 1, 9);
  StateMean(arrays()).average(state, first, 1, group);
  EXPECT_EQ(state, state_of(1, -4, 2, 1, 7));
}

TEST_F(MeanTest, TakesBounds) {
  const std::vector<StateArray> bounds = {{"least", 0, 1, false, IMP_MERGE_SMALLEST},
                                          {"mean", 4, 1, false},
                                          {"most", 8, 1, false, IMP_MERGE_LARGEST}};
  const auto of = [](float least, float mean, float most) {
    const float numbers[] = {least, mean, most};
    std::vector<std::byte> state(sizeof numbers);
    std::memcpy(state.data(), numbers, sizeof numbers);
    return state;
  };
  std::vector<std::byte> state = first ? of(-3, 1, 2) : of(-1, 5, 4);
  StateMean(bounds).average(state, true, 2, group);
  EXPECT_EQ(state, of(-3, 3, 4));
  state = first ? of(-3, 1, 2) : of(-7, 5, 9);
  StateMean(bounds).average(state, first, 1, group);
  EXPECT_EQ(state, of(-3, 1, 2));
}

TEST_F(MeanTest, HasTheSameBitsInAllRanksAndEveryTime) {
  const auto drawn = [&](std::uint32_t rank) {
    return state_of(0.1f + static_cast<float>(rank) / 3, 1e-7f, 3e5f + static_cast<float>(rank), 0.3f, 1);
  };
  std::vector<std::byte> once = drawn(group.rank()), again = once;
  StateMean mean(arrays());
  mean.average(once, true, 2, group);
  mean.average(again, true, 2, group);
  EXPECT_EQ(once, again);
  std::vector<std::byte> of_first = once;
  group.broadcast(of_first);
  EXPECT_EQ(once, of_first);
}

class Ending : public ::testing::Environment {
 public:
  void TearDown() override { Group::all().finish(); }
};
const ::testing::Environment* const ending = ::testing::AddGlobalTestEnvironment(new Ending);

}  // namespace
}  // namespace imprint::studio

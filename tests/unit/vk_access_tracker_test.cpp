#include "compute/vk/access_tracker.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace imprint::vk {
namespace {

Access read(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end) {
  return {buffer, begin, end, false};
}
Access write(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end) {
  return {buffer, begin, end, true};
}
bool dispatch(AccessTracker& tracker, std::vector<Access> accesses) { return tracker.dispatch(accesses); }

TEST(AccessTracker, OrdersEveryKindOfHazard) {
  for (const auto& [first, second, hazard] : {std::tuple{write(0, 0, 8), read(0, 0, 8), true},
                                              {write(0, 0, 8), write(0, 0, 8), true},
                                              {read(0, 0, 8), write(0, 0, 8), true},
                                              {read(0, 0, 8), read(0, 0, 8), false}}) {
    AccessTracker tracker;
    EXPECT_FALSE(dispatch(tracker, {first}));
    EXPECT_EQ(dispatch(tracker, {second}), hazard);
  }
}

TEST(AccessTracker, NeedsNoBarrierBetweenSeparateRanges) {
  AccessTracker tracker;
  EXPECT_FALSE(dispatch(tracker, {write(0, 0, 8)}));
  EXPECT_FALSE(dispatch(tracker, {write(0, 8, 16)})) << "ranges that only touch";
  EXPECT_FALSE(dispatch(tracker, {write(1, 0, 8)})) << "another buffer";
  EXPECT_FALSE(dispatch(tracker, {read(0, 5, 5)})) << "an empty range";
  EXPECT_TRUE(dispatch(tracker, {read(0, 15, 17)}));
}

TEST(AccessTracker, ForgetsAtABarrierButKeepsTheDispatchThatAskedForIt) {
  AccessTracker tracker;
  EXPECT_FALSE(dispatch(tracker, {write(0, 0, 8)}));
  EXPECT_TRUE(dispatch(tracker, {read(0, 0, 8), write(1, 0, 8)}));
  EXPECT_FALSE(dispatch(tracker, {read(0, 0, 8)})) << "written before the barrier";
  EXPECT_TRUE(dispatch(tracker, {read(1, 0, 8)}));
  EXPECT_FALSE(dispatch(tracker, {write(0, 0, 8)})) << "read before the second barrier";
  tracker.barrier();
  EXPECT_FALSE(dispatch(tracker, {write(0, 0, 8)}));
}

TEST(AccessTracker, FindsNoHazardInsideOneDispatch) {
  AccessTracker tracker;
  EXPECT_FALSE(dispatch(tracker, {read(0, 0, 8), write(0, 0, 8)})) << "a kernel in place";
}

// Every pair of dispatches with a hazard has a barrier between them. No barrier exists without such a pair.
TEST(AccessTracker, IsExactOnRandomPrograms) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<Access>> program(20);
    for (auto& accesses : program) {
      for (unsigned n = 1 + random() % 3; n > 0; --n) {
        const std::uint64_t begin = random() % 30;
        accesses.push_back(
            {static_cast<std::uint32_t>(random() % 2), begin, begin + 1 + random() % 6, random() % 3 == 0});
      }
    }
    const auto hazard = [&](std::size_t i, std::size_t j) {
      for (const auto& a : program[i]) {
        for (const auto& b : program[j]) {
          if (a.buffer != b.buffer || !(a.write || b.write)) continue;
          for (auto unit = a.begin; unit < a.end; ++unit) {
            if (unit >= b.begin && unit < b.end) return true;
          }
        }
      }
      return false;
    };
    AccessTracker tracker;
    std::size_t last_barrier = 0;
    for (std::size_t j = 0; j < program.size(); ++j) {
      bool needed = false;
      for (std::size_t i = last_barrier; i < j; ++i) needed |= hazard(i, j);
      ASSERT_EQ(tracker.dispatch(program[j]), needed) << "seed " << seed << " dispatch " << j;
      if (needed) last_barrier = j;
    }
  }
}

}  // namespace
}  // namespace imprint::vk

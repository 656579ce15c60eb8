// Scans, sorts and scatters at their edges: NaN, infinities, negative zero, ties, indices outside; and equal
// bits however a run is sliced. Runs on the device and on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/graph/gradients/autodiff.h"
#include "tests/gpu/session_test.h"

namespace imprint {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

class OrderTest : public test::SessionTest {
 protected:
  HostTensor run(const Tensor& x, const Tensor& result, std::vector<float> values) {
    Program program = compile(ProgramDescription{.name = "order", .inputs = {x}, .outputs = {result}});
    return session().run(program, std::vector{HostTensor::from(std::move(values), x.shape())}).value()[0];
  }
};

TEST_F(OrderTest, PutsNanLastInBothDirections) {
  const Tensor x = input("x", {8});
  const std::vector<float> values{1, kNan, -kInf, -0.0f, 0, kInf, kNan, -2};
  EXPECT_THAT(run(x, argsort(x), values).ints, ElementsAre(2, 7, 3, 4, 0, 5, 1, 6));
  EXPECT_THAT(run(x, argsort(x, 0, true), values).ints, ElementsAre(5, 0, 3, 4, 7, 2, 1, 6));
  EXPECT_THAT(run(x, topk(x, 3).indices, values).ints, ElementsAre(5, 0, 3));
  EXPECT_THAT(run(x, topk(x, 2, 0, false).indices, values).ints, ElementsAre(2, 7));
}

TEST_F(OrderTest, PutsNanLastInLongLines) {
  constexpr std::int64_t kCount = 20000;
  const Tensor x = input("x", {kCount});
  std::vector<float> values(kCount, 1);
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] = kNan;
  for (std::size_t i = 3; i < values.size(); i += 7) values[i] = -static_cast<float>(i % 11);
  std::vector<std::int32_t> expected(kCount);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::int32_t>(i);
  std::ranges::stable_sort(expected, [&](std::int32_t a, std::int32_t b) {
    const float u = values[static_cast<std::size_t>(a)], v = values[static_cast<std::size_t>(b)];
    return std::isnan(u) || std::isnan(v) ? !std::isnan(u) && std::isnan(v) : u > v;
  });
  EXPECT_EQ(run(x, argsort(x, 0, true), values).ints, expected);
  // More than there are numbers: the first NaNs follow them.
  expected.resize(900);
  EXPECT_EQ(run(x, topk(x, 900).indices, values).ints, expected);
}

TEST_F(OrderTest, KeepsTheLastOfEqualExtremesAndPassesNanOn) {
  const Tensor x = input("x", {6});
  const std::vector<float> values{-kInf, 2, 2, 1, kNan, 5};
  EXPECT_THAT(run(x, cummax(x, 0).indices, values).ints, ElementsAre(0, 1, 2, 2, 4, 4));
  EXPECT_THAT(run(x, cummin(x, 0).indices, values).ints, ElementsAre(0, 0, 0, 0, 4, 4));
  EXPECT_TRUE(std::isnan(run(x, cummax(x, 0).values, values).floats[5]));
}

TEST_F(OrderTest, LogcumsumexpTakesInfinities) {
  const Tensor x = input("x", {6});
  const std::vector<float> found = run(x, logcumsumexp(x, 0), {-kInf, -kInf, -500, 3, kInf, 1}).floats;
  EXPECT_THAT(found, ElementsAre(-kInf, -kInf, -500, 3, kInf, kInf));
}

TEST_F(OrderTest, ScattersInOrderAndDropsWhatIsOutside) {
  const Tensor base = zeros({4}), x = input("x", {6});
  const Tensor indices = Tensor::from_ints(std::vector<std::int32_t>{1, -1, 1, 4, 3, 1}, {6});
  const std::vector<float> values{5, 9, kNan, 9, 2, 7};
  EXPECT_THAT(run(x, scatter(base, 0, indices, x, Scatter::assign), values).floats, ElementsAre(0, 7, 0, 2));
  const std::vector<float> largest = run(x, scatter(base, 0, indices, x, Scatter::max), values).floats;
  EXPECT_TRUE(std::isnan(largest[1]));
  EXPECT_EQ(largest[3], 2);
  EXPECT_THAT(run(x, scatter(base + 1.0f, 0, indices, x, Scatter::mul), {5, 9, 2, 9, 3, 7}).floats,
              ElementsAre(1, 70, 1, 3));
}

// A look-up table's gradient, a sort and a scan in one program, whole and dispatch by dispatch.
TEST_F(OrderTest, GivesEqualBitsHoweverItIsSliced) {
  constexpr std::int64_t kRows = 700, kWidth = 24, kIds = 600;
  const Variable table("table", {kRows, kWidth}, test::wave(kRows * kWidth, 1, 1));
  std::vector<std::int32_t> ids(kIds);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = i % 3 == 0 ? 5 : static_cast<std::int32_t>(i * 37 % 720) - 9;
  const Tensor taken = take(table.value(), 0, Tensor::from_ints(ids, {kIds}));
  const Tensor line = reshape(taken, {kIds * kWidth});
  const Tensor loss = sum(taken * taken) + sum(sort(line).values * cumsum(line, 0)) * 1e-3f;
  const Tensor target = table.value();
  const auto gradient = gradients(loss, std::span(&target, 1));
  ASSERT_TRUE(gradient.ok()) << gradient.error().message;
  const Variable result = Variable::zeros("result", table.shape());
  Program program =
      compile(ProgramDescription{.name = "sliced", .updates = {Update::assign(result, (*gradient)[0])}});
  run_sliced(program, {10000});
  const std::vector<float> first = floats(result);
  EXPECT_NE(first[5 * kWidth], 0);
  ASSERT_TRUE(
      session().write(result, HostTensor::from(std::vector<float>(first.size()), table.shape())).ok());
  run_sliced(program, {1});
  EXPECT_EQ(floats(result), first);
}

}  // namespace
}  // namespace imprint

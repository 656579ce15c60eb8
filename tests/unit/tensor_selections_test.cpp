// Elements chosen and placed by indices, order and masks, against numbers counted by hand; derivatives along
// directions.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;
using Numbers = std::vector<double>;

Tensor ints(std::vector<std::int32_t> values, Shape shape) { return Tensor::from_ints(values, shape); }

TEST(Selections, ListsOfIndicesNameRows) {
  const Tensor data = Tensor::from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 2, 2});
  EXPECT_EQ(evaluate(gather_nd(data, ints({2, 1, 0, 0, 3, 0}, {3, 2})), {}), (Numbers{10, 11, 0, 1, 0, 0}));
  EXPECT_EQ(evaluate(gather_nd(data, ints({1, 0, 1, 0, -1, 0}, {2, 3})), {}), (Numbers{5, 0}));
  EXPECT_EQ(gather_nd(data, ints({1}, {1})).shape(), (Shape{2, 2}));
  const Tensor base = zeros({2, 3}), at = ints({0, 1, 1, 2, 0, 1, 5, 5}, {4, 2});
  const Tensor updates = Tensor::from({1, 2, 3, 9}, {4});
  EXPECT_EQ(evaluate(scatter_nd(base, at, updates), {}), (Numbers{0, 3, 0, 0, 0, 2}));
  EXPECT_EQ(evaluate(scatter_nd(base, at, updates, Scatter::add), {}), (Numbers{0, 4, 0, 0, 0, 2}));
  EXPECT_NE(scatter_nd(base, at, zeros({3})).error().message.find("expected [4]"), std::string::npos);
  EXPECT_FALSE(gather_nd(data, ints({0, 0, 0, 0}, {4})).ok());
  const Tensor x = Tensor::from({1, 2, 3, 4}, {4}), ids = ints({2, 0, 2, 9}, {4});
  EXPECT_EQ(evaluate(segment_reduce(x, ids, 3), {}), (Numbers{2, 0, 4}));
  EXPECT_EQ(evaluate(segment_reduce(x, ids, 3, Scatter::max), {}),
            (Numbers{2, -std::numeric_limits<double>::infinity(), 3}));
  EXPECT_EQ(evaluate(slice_assign(x, 0, -2, Tensor::from({8, 9}, {2})), {}), (Numbers{1, 2, 8, 9}));
  EXPECT_FALSE(slice_assign(x, 0, 3, zeros({2})).ok());
}

TEST(Selections, Counts) {
  EXPECT_EQ(evaluate(bincount(ints({0, 2, 2, 7, -1}, {5}), 4), {}), (Numbers{1, 0, 2, 0}));
  EXPECT_EQ(evaluate(histogram(Tensor::from({0, 0.4f, 0.5f, 1, 1.1f, NAN}, {6}), 2, 0, 1), {}),
            (Numbers{2, 2}));
  const Tensor sorted = ints({1, 3, 3, 7}, {4}), values = ints({0, 1, 3, 4, 9}, {5});
  EXPECT_EQ(evaluate(searchsorted(sorted, values), {}), (Numbers{0, 0, 1, 3, 4}));
  EXPECT_EQ(evaluate(searchsorted(sorted, values, true), {}), (Numbers{0, 1, 3, 3, 4}));
}

TEST(Selections, OrderAndBounds) {
  const Tensor x = Tensor::from({4, 1, 3, 2, 5, 5, NAN, 0}, {2, 4});
  const Numbers middle = evaluate(median(x), {});
  EXPECT_EQ(middle[0], 2.5);
  EXPECT_TRUE(std::isnan(middle[1]));
  EXPECT_EQ(evaluate(quantile(narrow(x, 0, 0, 1), 1), {}), (Numbers{4}));
  EXPECT_FALSE(quantile(x, 1.5).ok());
  const Tensor row = Tensor::from({4, 0, 4, -1, 0, 2}, {2, 3});
  const Selected above = masked_select(row, row > 0.0f, 2);
  EXPECT_EQ(evaluate(above.values, {}), (Numbers{4, 4}));
  EXPECT_EQ(evaluate(above.count, {}), (Numbers{3}));
  EXPECT_EQ(evaluate(nonzero(row, 5).values, {}), (Numbers{0, 0, 0, 2, 1, 0, 1, 2, -1, -1}));
  EXPECT_EQ(evaluate(unique(row, 6).values, {}), (Numbers{-1, 0, 2, 4, 0, 0}));
  EXPECT_EQ(evaluate(unique(row, 6).count, {}), (Numbers{4}));
}

TEST(Selections, RandomNumbersHaveTheirMoments) {
  const Tensor generator = ints({7, 1, 0, 0}, {4});
  EXPECT_NEAR(evaluate(mean(cast(random_bernoulli(generator, full({4000}, 0.3), 1), DType::float32)), {})[0],
              0.3, 0.03);
  const Tensor waits = random_exponential(generator, {4000}, 2);
  EXPECT_NEAR(evaluate(mean(waits), {})[0], 1, 0.06);
  EXPECT_GE(evaluate(min(waits), {})[0], 0);
  const Tensor bounded = random_truncated_normal(generator, {4000}, 3, -1, 2);
  EXPECT_NEAR(evaluate(mean(bounded), {})[0], 0.2296, 0.04);  // (phi(-1) - phi(2)) / (Phi(2) - Phi(-1))
  EXPECT_GE(evaluate(min(bounded), {})[0], -1);
  EXPECT_LE(evaluate(max(bounded), {})[0], 2);
}

TEST(Selections, DerivativesAlongDirections) {
  const Tensor x = Tensor::from({1, 2}, {2}), y = Tensor::from({3, 4}, {2});
  const Tensor outputs[] = {x * x * y, sum(y)}, inputs[] = {x, y};
  const Tensor tangents[] = {Tensor::from({1, 0}, {2}), Tensor::from({0, 1}, {2})};
  const auto forward = jvp(outputs, inputs, tangents).value();
  EXPECT_EQ(evaluate(forward[0], {}), (Numbers{6, 4}));  // 2 x y dx + x^2 dy
  EXPECT_EQ(evaluate(forward[1], {}), (Numbers{1}));
  const Tensor cotangents[] = {Tensor::from({1, 10}, {2}), Tensor(0.5f)};
  const auto back = vjp(outputs, inputs, cotangents).value();
  EXPECT_EQ(evaluate(back[0], {}), (Numbers{6, 160}));
  EXPECT_EQ(evaluate(back[1], {}), (Numbers{1.5, 40.5}));
  EXPECT_FALSE(vjp(outputs, inputs, tangents).ok());
}

}  // namespace
}  // namespace imprint

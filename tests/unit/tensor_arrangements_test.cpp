// Products by letters and arrangements against loops; substitution in graphs.

#include <gtest/gtest.h>

#include <cmath>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/composites/images.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;
using Numbers = std::vector<double>;

Tensor count(const Shape& shape) {
  return reshape(cast(arange(shape.element_count()), DType::float32), shape);
}

TEST(Arrangements, EinsumSumsOverItsLetters) {
  const Tensor a = input("a", {2, 3, 4}), b = input("b", {4, 3, 5});
  Numbers av(24), bv(60), expected(2 * 5, 0.0);
  for (std::size_t i = 0; i < 24; ++i) av[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < 60; ++i) bv[i] = std::cos(static_cast<double>(i));
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t l = 0; l < 5; ++l)
          expected[l * 2 + i] += av[(i * 3 + j) * 4 + k] * bv[(k * 3 + j) * 5 + l];
  const Numbers found = evaluate(einsum("ijk,kjl->li", {a, b}), {{"a", av}, {"b", bv}});
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
  EXPECT_EQ(einsum("ijk,kjl", {a, b}).shape(), (Shape{2, 5}));
  EXPECT_NEAR(evaluate(einsum("ii", {count({3, 3})}), {})[0], 0 + 4 + 8, 1e-12);
  EXPECT_EQ(evaluate(einsum("ijj->ji", {count({2, 2, 2})}), {}), (Numbers{0, 4, 3, 7}));
  EXPECT_EQ(evaluate(einsum("ij->j", {count({2, 3})}), {}), (Numbers{3, 5, 7}));
  EXPECT_NE(einsum("ij,jk->ik", {a, b}).error().message.find("expected one axis per letter"),
            std::string::npos);
  EXPECT_FALSE(einsum("ijk->z", {a}).ok());
  EXPECT_FALSE(einsum("ijk,kjl->il", {a}).ok());
}

TEST(Arrangements, MatricesAndTriangles) {
  EXPECT_EQ(evaluate(tril(count({3, 3})), {}), (Numbers{0, 0, 0, 3, 4, 0, 6, 7, 8}));
  EXPECT_EQ(evaluate(triu(count({2, 3}), 1), {}), (Numbers{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(evaluate(diagonal(count({3, 4}), 1), {}), (Numbers{1, 6, 11}));
  EXPECT_EQ(evaluate(diagonal(count({3, 4}), -2), {}), (Numbers{8}));
  EXPECT_EQ(diagonal(count({3, 4}), 9).shape(), (Shape{0}));
  EXPECT_EQ(evaluate(trace(count({2, 2, 2})), {}), (Numbers{3, 11}));
  EXPECT_EQ(evaluate(eye(2, 3), {}), (Numbers{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(evaluate(diag_embed(count({2})), {}), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(evaluate(outer(count({2}), count({3})), {}), (Numbers{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(evaluate(cross(Tensor::from({1, 0, 0}, {3}), Tensor::from({0, 1, 0}, {3})), {}),
            (Numbers{0, 0, 1}));
  EXPECT_NEAR(evaluate(norm(Tensor::from({3, -4}, {2})), {})[0], 5, 1e-12);
  EXPECT_EQ(evaluate(norm(zeros({2})), {})[0], 0);
  EXPECT_EQ(evaluate(kron(eye(2), Tensor::from({7}, {1, 1})), {}), (Numbers{7, 0, 0, 7}));
}

TEST(Arrangements, MovesOfElements) {
  EXPECT_EQ(evaluate(roll(count({5}), 2, 0), {}), (Numbers{3, 4, 0, 1, 2}));
  EXPECT_EQ(evaluate(rot90(count({2, 2})), {}), (Numbers{1, 3, 0, 2}));
  EXPECT_EQ(evaluate(rot90(count({2, 2}), -1), {}), (Numbers{2, 0, 3, 1}));
  EXPECT_EQ(evaluate(repeat_interleave(count({3}), 0, 2), {}), (Numbers{0, 0, 1, 1, 2, 2}));
  const std::int64_t times[] = {2, 2};
  EXPECT_EQ(evaluate(tile(count({1, 2}), times), {}), (Numbers{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(evaluate(linspace(1, 2, 5), {}), (Numbers{1, 1.25, 1.5, 1.75, 2}));
  EXPECT_EQ(movedim(zeros({2, 3, 4}), 0, -1).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(unflatten(zeros({2, 12}), 1, {3, 4}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(chunk(zeros({7}), 3, 0).size(), 3u);
  const Tensor vectors[] = {count({2}), count({3})};
  EXPECT_EQ(evaluate(meshgrid(vectors)[1], {}), (Numbers{0, 1, 2, 0, 1, 2}));
  const std::pair<std::int64_t, std::int64_t> amounts[] = {{2, 2}};
  EXPECT_EQ(evaluate(pad(count({3}), amounts, PadMode::reflect), {}), (Numbers{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(evaluate(pad(count({3}), amounts, PadMode::edge), {}), (Numbers{0, 0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(evaluate(pad(count({3}), amounts, PadMode::wrap), {}), (Numbers{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_FALSE(pad(count({2}), amounts, PadMode::reflect).ok());
}

TEST(Arrangements, ElementwiseComposites) {
  const double infinity = INFINITY;
  EXPECT_EQ(evaluate(floor_divide(input("a", {3}, DType::int32), Tensor(2)), {{"a", {-3, 3, -4}}}),
            (Numbers{-2, 1, -2}));
  EXPECT_EQ(evaluate(nan_to_num(input("a", {3}), 1, 2, 3), {{"a", {NAN, infinity, -infinity}}}),
            (Numbers{1, 2, 3}));
}

TEST(Arrangements, FoldIsTheAdjointOfUnfold) {
  // <unfold(x), c> = <x, fold(c)>.
  const UnfoldOptions windows{.size = {2, 3}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}};
  const Tensor x = count({2, 3, 4, 7}), columns = unfold(x, windows);
  ASSERT_TRUE(columns.ok()) << columns.error().message;
  const Tensor c = sin(count(columns.shape()));
  const double left = evaluate(sum(columns * c), {})[0],
               right = evaluate(sum(x * fold(c, {4, 7}, windows)), {})[0];
  EXPECT_NEAR(left, right, 1e-9 * std::fabs(left));
  EXPECT_FALSE(fold(c, {5, 7}, windows).ok());
}

TEST(Substitute, ReplacesTensorsInAGraph) {
  const Variable w("w", {2}, std::vector<float>{1, 2});
  const Tensor x = input("x", {2}), shared = exp(x), y = sum(shared * w.value() + w.value());
  const Tensor from[] = {w.value()}, to[] = {2.0f * w.value()};
  const Tensor replaced = substitute(y, from, to);
  const reference::Bindings bindings{{"x", {0, 0}}, {"w", {1, 2}}};
  EXPECT_EQ(evaluate(y, bindings)[0], 6);
  EXPECT_EQ(evaluate(replaced, bindings)[0], 12);
  EXPECT_EQ(substitute(shared, from, to).node(), shared.node());  // does not depend on w
  const Tensor wrong[] = {zeros({3})};
  EXPECT_NE(substitute(y, from, wrong).error().message.find("substitute: found"), std::string::npos);
}

}  // namespace
}  // namespace imprint

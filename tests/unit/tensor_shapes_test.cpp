// Shapes, broadcasting, views and dtypes: the nodes that operations create, and the elements that they
// select.

#include <gtest/gtest.h>

#include <array>

#include "compute/tensor/build.h"
#include "tests/reference/interpreter.h"

namespace imprint {

using namespace tensor;

namespace {

using reference::evaluate;

std::vector<double> count_up(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return values;
}

std::vector<double> of_range(const Tensor& tensor, std::int64_t count) {
  return evaluate(tensor, {{"x", count_up(count)}});
}

Op op_of(const Tensor& tensor) { return tensor.node()->op; }

TEST(Shapes, Arithmetic) {
  EXPECT_EQ((Shape{2, 3, 4}).element_count(), 24);
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_EQ((Shape{2, 0}).element_count(), 0);
  EXPECT_EQ((Shape{2, 3}).text(), "[2, 3]");
  EXPECT_EQ(Shape{}.text(), "[]");
  EXPECT_EQ(row_major_strides({2, 3, 4})[0], 12);
  EXPECT_EQ(*broadcast({3, 1, 5}, {4, 1}), (Shape{3, 4, 5}));
  EXPECT_EQ(*broadcast({}, {2}), Shape{2});
  EXPECT_EQ(*broadcast({0, 5}, {1, 5}), (Shape{0, 5}));
  EXPECT_FALSE(broadcast({3}, {4}));
  EXPECT_FALSE(broadcast({0}, {4}));
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_FALSE(normalize_axis(3, 3));
  EXPECT_FALSE(normalize_axis(-4, 3));
  EXPECT_FALSE(normalize_axis(0, 0));
  EXPECT_GT((Shape{1 << 30, 1 << 30, 1 << 30}).element_count(), std::int64_t{1} << 60);
}

TEST(Broadcasting, OperandsHaveTheOutputsShape) {
  const Tensor sum_of = input("x", {3, 1, 5}) + input("y", {4, 1});
  EXPECT_EQ(sum_of.shape(), (Shape{3, 4, 5}));
  for (const NodeRef& operand : sum_of.node()->inputs) EXPECT_EQ(operand->shape, sum_of.shape());
  const Tensor scaled = input("x", {3, 5}) * 2.5f;
  EXPECT_EQ(scaled.node()->inputs[1]->op, Op::full);
  EXPECT_EQ(scaled.node()->inputs[1]->shape, (Shape{3, 5}));
}

TEST(Broadcasting, NumbersAdoptTheDtype) {
  const Tensor ints = input("x", {3}, DType::int32);
  EXPECT_EQ((ints + 1).dtype(), DType::int32);
  EXPECT_EQ((ints * 2.0f).dtype(), DType::int32);
  EXPECT_EQ((input("x", {3}) + 1).dtype(), DType::float32);
  EXPECT_EQ(where(ints > 0, ints, 0.0f).dtype(), DType::int32);
  EXPECT_EQ((Tensor(1) + Tensor(2.5f)).dtype(), DType::float32);
  EXPECT_EQ((ints * 2.5f).error().code, ErrorCode::dtype_mismatch);
}

TEST(Simplification, IsExact) {
  const Tensor x = input("x", {3});
  EXPECT_EQ((x * 1).node(), x.node());
  EXPECT_EQ((1.0f * x).node(), x.node());
  EXPECT_EQ((x + 0).node(), x.node());
  EXPECT_EQ((x - 0).node(), x.node());
  EXPECT_EQ((x / 1).node(), x.node());
  EXPECT_EQ((-(-x)).node(), x.node());
  EXPECT_EQ(op_of(x * 0), Op::mul);  // NaN * 0 is NaN
  EXPECT_EQ(op_of(0 - x), Op::neg);
  EXPECT_EQ(op_of(x * -1), Op::neg);
  EXPECT_EQ(op_of(1 / x), Op::recip);
  EXPECT_EQ(op_of(pow(x, 2)), Op::mul);
  EXPECT_EQ(pow(x, 1).node(), x.node());
  EXPECT_EQ(*full_value(Tensor(2.0f) * Tensor(3.0f) + Tensor(1.0f)), 7);
  EXPECT_EQ((ones({2, 3}) * input("y", {3})).shape(), (Shape{2, 3}));
  EXPECT_EQ(*full_value(sum(ones({2, 3}))), 6);
}

TEST(Views, CollapseWhereMade) {
  const Tensor x = input("x", {2, 3, 4});
  EXPECT_EQ(reshape(x, {2, 3, 4}).node(), x.node());
  EXPECT_EQ(reshape(reshape(x, {6, 4}), {24}).node()->inputs[0], x.node());
  EXPECT_EQ(reshape(reshape(x, {6, 4}), {2, 3, 4}).node(), x.node());
  EXPECT_EQ(permute(permute(x, {1, 2, 0}), {2, 0, 1}).node(), x.node());
  EXPECT_EQ(permute(permute(x, {1, 2, 0}), {1, 0, 2}).node()->inputs[0], x.node());
  EXPECT_EQ(op_of(permute(input("y", {1, 3}), {1, 0})), Op::reshape);
  EXPECT_EQ(expand(x, {2, 3, 4}).node(), x.node());
  EXPECT_EQ(*full_value(expand(Tensor(3.0f), {4, 5})), 3);
  EXPECT_EQ(slice(slice(x, 2, 1, 4), 2, 0, 3, 2).node()->inputs[0], x.node());
  EXPECT_EQ(flip(flip(x, 1), 1).node(), x.node());
  EXPECT_EQ(cast(x, DType::float32).node(), x.node());
  const std::array<std::pair<std::int64_t, std::int64_t>, 3> none{};
  EXPECT_EQ(pad(x, none).node(), x.node());
}

TEST(Views, SliceFollowsPython) {
  const Tensor x = input("x", {10});
  const auto picked = [&](std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
    return of_range(slice(x, 0, start, stop, step), 10);
  };
  EXPECT_EQ(picked(2, 5), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(picked(-3, 100), (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(picked(-100, 2), (std::vector<double>{0, 1}));
  EXPECT_EQ(picked(1, 10, 4), (std::vector<double>{1, 5, 9}));
  EXPECT_EQ(picked(8, 2, -3), (std::vector<double>{8, 5}));
  EXPECT_EQ(picked(100, -100, -4), (std::vector<double>{9, 5, 1}));
  EXPECT_EQ(picked(5, 5), (std::vector<double>{}));
  EXPECT_EQ(picked(5, 2), (std::vector<double>{}));
  EXPECT_EQ(picked(2, 5, -1), (std::vector<double>{}));
  EXPECT_EQ(picked(INT64_MAX, INT64_MIN, INT64_MIN), (std::vector<double>{9}));
}

TEST(Views, Elements) {
  const Tensor x = input("x", {2, 3});
  EXPECT_EQ(of_range(transpose(x), 6), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(of_range(flip(x, 1), 6), (std::vector<double>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(of_range(repeat(x, 1, 2), 6), (std::vector<double>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(of_range(window(input("x", {5}), 0, 2, 2), 5), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(of_range(window(input("x", {6}), 0, 2, 1, 3), 6), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(of_range(concat({x, x}, 0), 6).size(), 12u);
  EXPECT_EQ(of_range(stack({x, x}, -1), 6), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(of_range(sum(expand(x, {4, 2, 3}), {0}), 6), (std::vector<double>{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(split(x, 2, 1)[1].shape(), (Shape{2, 1}));
  EXPECT_EQ(flatten(input("x", {2, 3, 4}), 1).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(input("x", {})).shape(), Shape{1});
  EXPECT_EQ(reshape(input("x", {0, 4}), {2, -1}).shape(), (Shape{2, 0}));
}

TEST(Indexing, OutsideReadsZero) {
  const Tensor x = input("x", {3, 2});
  const Tensor rows = Tensor::from_ints(std::array{2, -1, 0, 3}, {4});
  EXPECT_EQ(of_range(take(x, 0, rows), 6), (std::vector<double>{4, 5, 0, 0, 0, 1, 0, 0}));
  const Tensor columns = Tensor::from_ints(std::array{1, 0, 7}, {3, 1});
  EXPECT_EQ(of_range(gather(x, 1, columns), 6), (std::vector<double>{1, 2, 0}));
  EXPECT_EQ(of_range(scatter_add(x, 0, Tensor::from_ints(std::array{1, 9, 1, -1}, {2, 2}), ones({2, 2})), 6),
            (std::vector<double>{0, 1, 4, 3, 4, 5}));
  EXPECT_EQ(evaluate(one_hot(Tensor::from_ints(std::array{1, -1, 2}, {3}), 3)),
            (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Indexing, Cumsum) {
  const Tensor x = input("x", {4});
  EXPECT_EQ(of_range(cumsum(x, 0), 4), (std::vector<double>{0, 1, 3, 6}));
  EXPECT_EQ(of_range(cumsum(x, 0, true), 4), (std::vector<double>{0, 0, 1, 3}));
  EXPECT_EQ(of_range(cumsum(x, 0, false, true), 4), (std::vector<double>{6, 6, 5, 3}));
  EXPECT_EQ(of_range(cumsum(x, 0, true, true), 4), (std::vector<double>{6, 5, 3, 0}));
}

TEST(Integers, DivideByZeroToZeroAndWrap) {
  const Tensor a = Tensor::from_ints(std::array{7, -7, 7, INT32_MAX}, {4}),
               b = Tensor::from_ints(std::array{2, 2, 0, 1}, {4});
  EXPECT_EQ(evaluate(a / b), (std::vector<double>{3, -3, 0, INT32_MAX}));
  EXPECT_EQ(evaluate(remainder(a, b)), (std::vector<double>{1, 1, 0, 0}));
  EXPECT_EQ(evaluate(fmod(a, b)), (std::vector<double>{1, -1, 0, 0}));
  EXPECT_EQ(evaluate(a + b)[3], INT32_MIN);
}

TEST(Matmul, Shapes) {
  const auto shape_of = [](const Shape& a, const Shape& b) {
    return matmul(input("a", a), input("b", b)).shape();
  };
  EXPECT_EQ(shape_of({3, 4}, {4, 5}), (Shape{3, 5}));
  EXPECT_EQ(shape_of({4}, {4}), Shape{});
  EXPECT_EQ(shape_of({4}, {4, 5}), Shape{5});
  EXPECT_EQ(shape_of({3, 4}, {4}), Shape{3});
  EXPECT_EQ(shape_of({4}, {2, 4, 5}), (Shape{2, 5}));
  EXPECT_EQ(shape_of({2, 1, 3, 4}, {6, 4, 5}), (Shape{2, 6, 3, 5}));
  // One matrix for a batch of rows is one plain contraction.
  const Tensor product = matmul(input("a", {2, 3, 4}), input("b", {4, 5}));
  EXPECT_EQ(product.node()->inputs[0]->shape, (Shape{6, 5}));
}

TEST(Tensors, CarryTheirContent) {
  EXPECT_EQ(evaluate(Tensor::from({1, 2, 3}, {3})), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(evaluate(Tensor::from_bools(std::array{true, false}, {2})), (std::vector<double>{1, 0}));
  EXPECT_EQ(evaluate(arange(1, 2, 0.25)), (std::vector<double>{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(evaluate(arange(3)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(arange(2, 1, 1).shape(), Shape{0});
  const std::array<float, 2> initial{3, 4};
  const Variable variable("w", {2}, std::span<const float>(initial));
  EXPECT_EQ(evaluate(variable.value() * 2), (std::vector<double>{6, 8}));
  EXPECT_EQ(variable.value().node(), variable.value().node());
  EXPECT_EQ(Variable::zeros("z", {2, 2}, DType::int32).dtype(), DType::int32);
}

TEST(Tensors, NamesDoNotChangeValues) {
  const Tensor x = input("x", {3});
  EXPECT_EQ(describe(tanh(x).named("hidden")), "hidden [3]");
  const Tensor hidden = tanh(x), shared = hidden;
  EXPECT_EQ(of_range(hidden.named("hidden"), 3), of_range(shared, 3));
  EXPECT_EQ(x.named("other").node()->inputs[0], x.node());
  EXPECT_EQ(x.node()->label, "x");
}

TEST(Tensors, LongChainsAreReleasedWithoutRecursion) {
  Tensor x = input("x", {1});
  for (int i = 0; i < 1000000; ++i) x = tanh(x);
  EXPECT_TRUE(x.ok());
}

}  // namespace
}  // namespace imprint

// Gradients that differences cannot test: on kinks and ties, at zeros, after stop_gradient; second
// derivatives; errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "compute/graph/gradients/autodiff.h"
#include "tests/reference/interpreter.h"

namespace imprint {

using namespace tensor;

namespace {

using reference::Bindings;
using reference::evaluate;
using ::testing::HasSubstr;

Tensor gradient(const Tensor& loss, const Tensor& target) {
  Result<std::vector<Tensor>> found = gradients(loss, std::span<const Tensor>(&target, 1));
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? (*found)[0] : Tensor();
}

std::vector<double> gradient_at(Tensor (*op)(const Tensor&), std::vector<double> points) {
  const Tensor x = input("x", {static_cast<std::int64_t>(points.size())});
  return evaluate(gradient(sum(op(x)), x), {{"x", std::move(points)}});
}

TEST(Autodiff, KinksAsPyTorch) {
  using Values = std::vector<double>;
  EXPECT_EQ(gradient_at(relu, {0}), Values{0});
  EXPECT_EQ(gradient_at(abs, {0}), Values{0});
  EXPECT_EQ(gradient_at(relu6, {0, 6}), (Values{0, 0}));
  EXPECT_NEAR(gradient_at([](const Tensor& x) { return leaky_relu(x, 0.25); }, {0})[0], 0.25, 1e-12);
  EXPECT_EQ(gradient_at([](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 1, 1.5}), (Values{1, 1, 0}));
  EXPECT_EQ(gradient_at([](const Tensor& x) { return hard_tanh(x); }, {-1, 1, 0}), (Values{0, 0, 1}));
  EXPECT_EQ(gradient_at([](const Tensor& x) { return maximum(x, 0.0f); }, {0, 1}), (Values{0.5, 1}));
  EXPECT_EQ(gradient_at([](const Tensor& x) { return softplus(x); }, {0}), Values{0.5});
  EXPECT_EQ(gradient_at(log_sigmoid, {0}), Values{0.5});
  EXPECT_EQ(gradient_at([](const Tensor& x) { return elu(x); }, {0, 200}), (Values{1, 1}));
  EXPECT_EQ(gradient_at(silu, {0}), Values{0.5});
}

// The second and third derivatives of every activation, away from its kinks, and at 0 if the function is
// smooth there but written in two halves.
TEST(Autodiff, ActivationsAreSmoothInHigherOrders) {
  struct Activation {
    const char* name;
    std::function<Tensor(const Tensor&)> op;
    bool smooth_at_zero = true;
  };
  const Activation activations[] = {{"relu", relu, false},
                                    {"relu6", relu6, false},
                                    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }, false},
                                    {"elu", [](const Tensor& x) { return elu(x, 1.5); }, false},
                                    {"selu", selu, false},
                                    {"celu", [](const Tensor& x) { return celu(x, 0.7); }, false},
                                    {"gelu", gelu},
                                    {"gelu_tanh", gelu_tanh},
                                    {"sigmoid", sigmoid},
                                    {"log_sigmoid", log_sigmoid},
                                    {"hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x); }},
                                    {"silu", silu},
                                    {"hard_swish", hard_swish},
                                    {"mish", mish},
                                    {"softplus", [](const Tensor& x) { return softplus(x, 2); }},
                                    {"softsign", softsign, false},
                                    {"tanh", tanh},
                                    {"tanh_shrink", tanh_shrink},
                                    {"glu", [](const Tensor& x) {
                                       return glu(concat({x, x * 0.5f}, 0));
                                     }}};
  const std::vector<double> points{-5, -1.7, -0.4, 0, 0.4, 1.7, 5};
  constexpr double kStep = 1e-5;
  for (const Activation& activation : activations) {
    const Tensor x = input("x", {static_cast<std::int64_t>(points.size())});
    Tensor lower = activation.op(x);
    for (int order = 1; order <= 3; ++order) {
      const Tensor higher = gradient(sum(lower), x);
      std::vector<double> above = points, below = points;
      for (double& point : above) point += kStep;
      for (double& point : below) point -= kStep;
      const std::vector<double> found = evaluate(higher, {{"x", points}}),
                                after = evaluate(lower, {{"x", above}}),
                                before = evaluate(lower, {{"x", below}});
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i] == 0 && !activation.smooth_at_zero) continue;
        const double expected = (after[i] - before[i]) / (2 * kStep);
        EXPECT_NEAR(found[i], expected, 1e-6 * (1 + std::fabs(expected)))
            << activation.name << ", order " << order << " at " << points[i];
      }
      lower = higher;
    }
  }
}

TEST(Autodiff, TiesShareEqually) {
  const Tensor x = input("x", {2, 3});
  const Bindings bindings{{"x", {4, 1, 4, 2, 2, 2}}};
  EXPECT_EQ(evaluate(gradient(sum(max(x, {1})), x), bindings),
            (std::vector<double>{0.5, 0, 0.5, 1.0 / 3, 1.0 / 3, 1.0 / 3}));
  EXPECT_EQ(evaluate(gradient(min(x), x), bindings), (std::vector<double>{0, 1, 0, 0, 0, 0}));
}

TEST(Autodiff, ProductsWithZeros) {
  const Tensor x = input("x", {3, 3});
  const Bindings bindings{{"x", {2, 3, 4, 0, 3, 4, 0, 3, 0}}};
  EXPECT_EQ(evaluate(gradient(sum(prod(x, {1})), x), bindings),
            (std::vector<double>{12, 8, 6, 12, 0, 0, 0, 0, 0}));
  // The second derivative at a zero: d/dx1 of d(x0 x1 x2)/dx0 = x2, whatever x1 is.
  const Tensor row = input("row", {3});
  const Tensor first = slice(gradient(prod(row), row), 0, 0, 1);
  EXPECT_EQ(evaluate(gradient(sum(first), row), {{"row", {5, 0, 4}}}), (std::vector<double>{0, 4, 0}));
}

TEST(Autodiff, PowersAtZero) {
  const Tensor x = input("x", {4}), y = input("y", {4});
  const Bindings bindings{{"x", {0, 0, 2, -2}}, {"y", {2, 0, 0, 3}}};
  const Tensor loss = sum(pow(x, y));
  EXPECT_EQ(evaluate(gradient(loss, x), bindings), (std::vector<double>{0, 0, 0, 12}));
  const std::vector<double> by_exponent = evaluate(gradient(loss, y), bindings);
  EXPECT_EQ(by_exponent[0], 0);
  EXPECT_EQ(by_exponent[1], 0);
  EXPECT_NEAR(by_exponent[2], std::log(2.0), 1e-12);
}

TEST(Autodiff, BranchNotTakenStaysQuiet) {
  // exp overflows in the branch not taken; its gradient must not become 0 * inf.
  const std::vector<double> found = gradient_at([](const Tensor& x) { return elu(x); }, {1000});
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(gradient_at(mish, {1000})[0], 1);
  EXPECT_EQ(gradient_at([](const Tensor& x) { return softplus(x); }, {1000, -1000}),
            (std::vector<double>{1, 0}));
}

TEST(Autodiff, OpsThatPassNoGradient) {
  const Tensor x = input("x", {3});
  const Bindings bindings{{"x", {0.5, 1.5, -2.5}}};
  const std::vector<double> none{0, 0, 0};
  EXPECT_EQ(evaluate(gradient(sum(stop_gradient(x)), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(floor(x) + round(x) + sign(x)), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(cast(cast(x, DType::int32), DType::float32)), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(cast(x > 0, DType::float32)), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(one_hot(argmax(x, 0), 3)), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(input("other", {2})), x), bindings), none);
  EXPECT_EQ(evaluate(gradient(sum(x * stop_gradient(x)), x), bindings), bindings.at("x"));
}

TEST(Autodiff, TargetsInTheMiddleAndUsesAdd) {
  const Tensor x = input("x", {2});
  const Tensor hidden = x * 3;
  const Tensor loss = sum(hidden * hidden + hidden);
  const std::array targets{hidden, x};
  const Result<std::vector<Tensor>> found = gradients(loss, targets);
  ASSERT_TRUE(found);
  const Bindings bindings{{"x", {1, 2}}};
  EXPECT_EQ(evaluate((*found)[0], bindings), (std::vector<double>{7, 13}));
  EXPECT_EQ(evaluate((*found)[1], bindings), (std::vector<double>{21, 39}));
  EXPECT_EQ(evaluate(gradient(loss, loss), bindings), std::vector<double>{1});
}

TEST(Autodiff, SecondDerivatives) {
  const Tensor x = input("x", {5});
  const std::vector<double> points{-1.5, -0.5, 0.25, 0.75, 1.25};
  const auto check = [&](const char* name, const Tensor& y) {
    const Tensor first = gradient(sum(y), x);
    const std::vector<double> second = evaluate(gradient(sum(first), x), {{"x", points}});
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::vector<double> above = points, below = points;
      above[i] += 1e-5;
      below[i] -= 1e-5;
      double expected = 0;
      const std::vector<double> up = evaluate(first, {{"x", above}}), down = evaluate(first, {{"x", below}});
      for (std::size_t k = 0; k < points.size(); ++k) expected += (up[k] - down[k]) / 2e-5;
      EXPECT_NEAR(second[i], expected, 1e-5 * (1 + std::fabs(expected))) << name << " at " << points[i];
    }
  };
  check("tanh", tanh(x));
  check("sigmoid", sigmoid(x));
  check("gelu", gelu(x));
  check("softplus", softplus(x));
  check("cube", x * x * x);
  check("pow", pow(x * x + 1, 1.5f));
  check("softmax", softmax(x) * x);
  check("logsumexp", expand(logsumexp(x), {5}));
  check("prod", expand(prod(x), {5}));
  check("window", sum(window(x * x, 0, 2), {1}));
  check("cumsum", cumsum(x, 0) * x);
  check("matmul", matmul(reshape(x, {5, 1}), reshape(x * x, {1, 5})));
  check("layer_norm", layer_norm(x, ones({5}), zeros({5})));
  check("take", take(x * x, 0, Tensor::from_ints(std::array{0, 2, 2}, {3})));
  check("div", x / (x * x + 2));
}

TEST(Autodiff, ThirdDerivativeOfACube) {
  const Tensor x = input("x", {});
  Tensor y = x * x * x;
  for (int i = 0; i < 3; ++i) y = gradient(y, x);
  EXPECT_EQ(evaluate(y, {{"x", {7}}}), std::vector<double>{6});
}

TEST(Autodiff, OneHotProductsStayElementwise) {
  const Tensor values = input("values", {4, 3}), actions = input("actions", {4}, DType::int32);
  const Tensor found = gradient(sum(square(sum(values * one_hot(actions, 3), {1}))), values);
  std::vector<NodeRef> pending{found.node()};
  while (!pending.empty()) {
    const NodeRef node = pending.back();
    pending.pop_back();
    EXPECT_NE(op_info(node->op).kind, OpKind::scatter);
    EXPECT_NE(node->op, Op::gather);
    for (const NodeRef& input : node->inputs) pending.push_back(input);
  }
}

TEST(Autodiff, Refusals) {
  const Tensor x = input("x", {3, 2}), ints = input("ints", {1}, DType::int32);
  const auto message = [](const Tensor& loss, const Tensor& target) {
    const Result<std::vector<Tensor>> found = gradients(loss, std::span<const Tensor>(&target, 1));
    return found ? std::string("no error") : found.error().message;
  };
  EXPECT_THAT(message(x, x), HasSubstr("x [3, 2]"));
  EXPECT_THAT(message(x, x), HasSubstr("Sum or average"));
  EXPECT_THAT(message(ints, x), HasSubstr("int32"));
  EXPECT_THAT(message(sum(x), ints), HasSubstr("ints [1]"));
  EXPECT_THAT(message(sum(x + input("y", {7})), x), HasSubstr("expected shapes that broadcast"));
  EXPECT_THAT(message(sum(x), Tensor()), HasSubstr("uninitialised"));
}

TEST(Autodiff, DeepGraphs) {
  const Tensor x = input("x", {1});
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = sin(y);
  EXPECT_TRUE(gradient(sum(y), x).ok());
}

}  // namespace
}  // namespace imprint

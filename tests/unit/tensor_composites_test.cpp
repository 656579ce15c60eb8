// Composites against the formulas of their definitions, written with the C library on scalars.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "compute/tensor/composites/images.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<double> kPoints{-100, -7.5, -3, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 3, 6, 7.5, 100};

void expect_pointwise(const char* name, Tensor (*op)(const Tensor&),
                      const std::function<double(double)>& formula,
                      const std::vector<double>& points = kPoints) {
  const Tensor x = input("x", {static_cast<std::int64_t>(points.size())});
  const std::vector<double> found = evaluate(op(x), {{"x", points}});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double expected = formula(points[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(found[i])) << name << "(" << points[i] << ") is " << found[i];
    else if (std::isinf(expected))
      EXPECT_EQ(found[i], expected) << name << "(" << points[i] << ")";
    else
      EXPECT_NEAR(found[i], expected, 1e-6 * (1 + std::fabs(expected))) << name << "(" << points[i] << ")";
  }
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Composites, Mathematics) {
  const std::vector<double> positive{1e-6, 0.1, 0.5, 1, 2, 7, 1000};
  expect_pointwise("square", square, [](double x) { return x * x; });
  expect_pointwise(
      "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, positive);
  expect_pointwise("exp2", exp2, [](double x) { return std::exp2(x); }, {-3, -0.5, 0, 1, 2.5, 10});
  expect_pointwise(
      "log2", log2, [](double x) { return std::log2(x); }, positive);
  expect_pointwise(
      "log10", log10, [](double x) { return std::log10(x); }, positive);
  expect_pointwise("erfc", erfc, [](double x) { return std::erfc(x); });
  expect_pointwise("deg2rad", deg2rad, [](double x) { return x * std::numbers::pi / 180; });
  expect_pointwise("rad2deg", rad2deg, [](double x) { return x * 180 / std::numbers::pi; });
  expect_pointwise("is_finite", is_finite, [](double x) { return std::isfinite(x) ? 1.0 : 0.0; },
                   {0, 1, kNaN, kInfinity, -kInfinity});
}

TEST(Composites, ErfcKeepsItsTail) {
  const std::vector<double> points{0.4, 0.5, 0.7, 1, 2, 3, 5, 9};
  const std::vector<double> found = evaluate(erfc(input("x", {8})), {{"x", points}});
  for (std::size_t i = 0; i < points.size(); ++i)
    EXPECT_NEAR(found[i] / std::erfc(points[i]), 1, 2e-7) << points[i];
  EXPECT_EQ(evaluate(erfc(input("x", {2})), {{"x", {kInfinity, -kInfinity}}}), (std::vector<double>{0, 2}));
  EXPECT_TRUE(std::isnan(evaluate(erfc(input("x", {1})), {{"x", {kNaN}}})[0]));
}

TEST(Composites, Activations) {
  expect_pointwise("relu", relu, [](double x) { return x > 0 ? x : 0; });
  expect_pointwise("relu6", relu6, [](double x) { return std::fmin(std::fmax(x, 0), 6); });
  expect_pointwise(
      "leaky_relu", [](const Tensor& x) { return leaky_relu(x); },
      [](double x) { return x > 0 ? x : 0.01 * x; });
  expect_pointwise(
      "elu", [](const Tensor& x) { return elu(x, 1.5); },
      [](double x) { return x > 0 ? x : 1.5 * (std::exp(x) - 1); });
  expect_pointwise("selu", selu, [](double x) {
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1));
  });
  expect_pointwise(
      "celu", [](const Tensor& x) { return celu(x, 2); },
      [](double x) { return std::fmax(0, x) + std::fmin(0, 2 * (std::exp(x / 2) - 1)); });
  expect_pointwise("gelu", gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  expect_pointwise("gelu_tanh", gelu_tanh, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  });
  expect_pointwise("log_sigmoid", log_sigmoid, [](double x) { return x < -50 ? x : std::log(logistic(x)); });
  expect_pointwise(
      "hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x); },
      [](double x) { return std::fmin(std::fmax(x / 6 + 0.5, 0), 1); });
  expect_pointwise("silu", silu, [](double x) { return x * logistic(x); });
  expect_pointwise("hard_swish", hard_swish,
                   [](double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; });
  const auto softplus_of = [](double x) { return x > 50 ? x : std::log1p(std::exp(x)); };
  expect_pointwise("mish", mish, [&](double x) { return x * std::tanh(softplus_of(x)); });
  expect_pointwise(
      "softplus", [](const Tensor& x) { return softplus(x, 2); },
      [&](double x) { return softplus_of(2 * x) / 2; });
  expect_pointwise("softsign", softsign, [](double x) { return x / (1 + std::fabs(x)); });
  expect_pointwise("tanh_shrink", tanh_shrink, [](double x) { return x - std::tanh(x); });
  expect_pointwise(
      "hard_tanh", [](const Tensor& x) { return hard_tanh(x, -0.5, 2); },
      [](double x) { return std::fmin(std::fmax(x, -0.5), 2); });
  expect_pointwise(
      "hard_shrink", [](const Tensor& x) { return hard_shrink(x); },
      [](double x) { return std::fabs(x) > 0.5 ? x : 0; });
  expect_pointwise(
      "soft_shrink", [](const Tensor& x) { return soft_shrink(x); },
      [](double x) { return x > 0.5    ? x - 0.5
                            : x < -0.5 ? x + 0.5
                                       : 0; });
  expect_pointwise(
      "shrink", [](const Tensor& x) { return shrink(x, 0.25, 2); },
      [](double x) { return x > 0.25    ? x - 2
                            : x < -0.25 ? x + 2
                                        : 0; });
  expect_pointwise(
      "threshold", [](const Tensor& x) { return threshold(x, 0.25, -9); },
      [](double x) { return x > 0.25 ? x : -9; });
  expect_pointwise(
      "thresholded_relu", [](const Tensor& x) { return thresholded_relu(x, 1); },
      [](double x) { return x > 1 ? x : 0; });
}

TEST(Composites, NotANumberPassesThrough) {
  for (auto op : {relu, relu6, selu, gelu, silu, mish, softsign, hard_swish, log_sigmoid})
    EXPECT_TRUE(std::isnan(evaluate(op(input("x", {1})), {{"x", {kNaN}}})[0]));
  EXPECT_TRUE(std::isnan(evaluate(clamp(input("x", {1}), -1, 1), {{"x", {kNaN}}})[0]));
}

TEST(Composites, BinaryAndTernary) {
  const reference::Bindings bindings{{"a", {3, -3, 0, 1e30}}, {"b", {4, 4, 0, 1e30}}, {"t", {0, 0.25, 1, 2}}};
  const Tensor a = input("a", {4}), b = input("b", {4}), t = input("t", {4});
  const std::vector<double> lengths = evaluate(hypot(a, b), bindings);
  EXPECT_NEAR(lengths[0], 5, 1e-12);
  EXPECT_NEAR(lengths[1], 5, 1e-12);
  EXPECT_EQ(lengths[2], 0);
  EXPECT_NEAR(lengths[3], std::sqrt(2.0) * 1e30, 1e22);
  EXPECT_NEAR(evaluate(lerp(a, b, t), bindings)[1], -1.25, 1e-12);
  EXPECT_EQ(evaluate(clamp(a, -1, 2), bindings), (std::vector<double>{2, -1, 0, 2}));
  EXPECT_EQ(evaluate(masked_fill(a, a < 0.0f, 7), bindings), (std::vector<double>{3, 7, 0, 1e30}));
  EXPECT_EQ(evaluate(prelu(a, Tensor::from({0.5}, {1})), bindings), (std::vector<double>{3, -1.5, 0, 1e30}));
}

TEST(Composites, Closeness) {
  const Tensor a = input("a", {8}), b = input("b", {8});
  const reference::Bindings bindings{
      {"a", {1, 1, 0, 100, kInfinity, kInfinity, kNaN, kInfinity}},
      {"b", {1.000005, 1.00005, 1e-9, 100.0005, kInfinity, -kInfinity, kNaN, 1}}};
  EXPECT_EQ(evaluate(is_close(a, b), bindings), (std::vector<double>{1, 0, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(evaluate(is_close(a, b, 0, 1e-3), bindings), (std::vector<double>{1, 1, 1, 1, 1, 0, 0, 0}));
}

// Miller, Attention Is Off By One, 2023: softmax with one more logit, which is 0 and not returned.
TEST(Composites, QuietSoftmaxMayChooseNothing) {
  const reference::Bindings bindings{{"x", {1, 2, 3, -500, -600, -700, 800, 0, 0}}};
  const Tensor x = input("x", {3, 3});
  const std::vector<double> quiet = evaluate(quiet_softmax(x), bindings);
  const std::vector<double> with_zero = evaluate(
      narrow(softmax(pad(x, std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 1}})), 1, 0, 3),
      bindings);
  for (std::size_t i = 0; i < quiet.size(); ++i) EXPECT_NEAR(quiet[i], with_zero[i], 1e-9) << i;
  EXPECT_NEAR(quiet[3] + quiet[4] + quiet[5], 0, 1e-9);
}

TEST(Composites, Reductions) {
  const reference::Bindings bindings{{"x", {1, 2, 3, 4, 5, 60}}};
  const Tensor x = input("x", {2, 3});
  EXPECT_EQ(evaluate(sum(x), bindings), std::vector<double>{75});
  EXPECT_EQ(evaluate(sum(x, {0}), bindings), (std::vector<double>{5, 7, 63}));
  EXPECT_NEAR(evaluate(mean(x, {1}), bindings)[0], 2, 1e-6);
  EXPECT_EQ(evaluate(prod(x, {1}), bindings), (std::vector<double>{6, 1200}));
  EXPECT_EQ(evaluate(max(x, {0}), bindings), (std::vector<double>{4, 5, 60}));
  EXPECT_EQ(evaluate(min(x, {-1}), bindings), (std::vector<double>{1, 4}));
  EXPECT_NEAR(evaluate(variance(x, {1}), bindings)[0], 1, 1e-6);
  EXPECT_NEAR(evaluate(variance(x, {1}, false, 0), bindings)[0], 2.0 / 3, 1e-6);
  EXPECT_EQ(evaluate(argmax(x, 1), bindings), (std::vector<double>{2, 2}));
  EXPECT_EQ(evaluate(argmin(x, 0), bindings), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(evaluate(argmax(x), bindings), std::vector<double>{5});
  EXPECT_EQ(evaluate(argmax(x, {}), bindings), std::vector<double>{5});
  EXPECT_EQ(evaluate(argmin(-x, {1, 0}), bindings), std::vector<double>{5}) << "in the tensor's own order";
  EXPECT_EQ(evaluate(argmax(reshape(x, {1, 3, 2}), {0, 2}), bindings), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(argmax(x, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(evaluate(any(x > 59.0f, {1}), bindings), (std::vector<double>{0, 1}));
  EXPECT_EQ(evaluate(all(x > 1.0f, {1}), bindings), (std::vector<double>{0, 1}));
  EXPECT_EQ(sum(x, {1}, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(sum(x, {}, true).shape(), (Shape{1, 1}));
  const double lse = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  EXPECT_NEAR(evaluate(logsumexp(x, {1}), bindings)[0], lse, 1e-12);
  EXPECT_NEAR(evaluate(logsumexp(x, {1}), bindings)[1], 60, 1e-9);
}

TEST(Composites, OneAxisMayBeANumber) {
  const Tensor x = input("x", {2, 3});
  const reference::Bindings bindings{{"x", {1, 5, 2, -3, 0, 4}}};
  const auto same = [&](const Tensor& number, const Tensor& list) {
    ASSERT_TRUE(number.ok() && list.ok());
    EXPECT_EQ(number.shape(), list.shape());
    EXPECT_EQ(evaluate(number, bindings), evaluate(list, bindings));
  };
  same(sum(x, 1), sum(x, {1}));
  same(mean(x, -1, true), mean(x, {-1}, true));
  same((max)(x, 0), (max)(x, {0}));
  same((min)(x, 1), (min)(x, {1}));
  same(prod(x, 0), prod(x, {0}));
  same(variance(x, 1, false, 0), variance(x, {1}, false, 0));
  same(logsumexp(x, 1), logsumexp(x, {1}));
  same(any(x > 4.0f, 1), any(x > 4.0f, {1}));
  same(all(x > 0.0f, 1), all(x > 0.0f, {1}));
  EXPECT_EQ(sum(x, {}).rank(), 0);  // no number: all axes
}

TEST(Composites, ReductionsOfNothing) {
  const Tensor x = input("x", {2, 0});
  const reference::Bindings bindings{{"x", {}}};
  EXPECT_EQ(evaluate(sum(x, {1}), bindings), (std::vector<double>{0, 0}));
  EXPECT_EQ(evaluate(prod(x, {1}), bindings), (std::vector<double>{1, 1}));
  EXPECT_EQ(evaluate(max(x, {1}), bindings), (std::vector<double>{-kInfinity, -kInfinity}));
  EXPECT_TRUE(std::isnan(evaluate(mean(x, {1}), bindings)[0]));
  EXPECT_EQ(evaluate(logsumexp(x, {1}), bindings), (std::vector<double>{-kInfinity, -kInfinity}));
  EXPECT_EQ(evaluate(softmax(x), bindings), std::vector<double>{});
}

TEST(Composites, InfiniteLogits) {
  const reference::Bindings bindings{{"x", {-kInfinity, -kInfinity, -kInfinity, 1, kInfinity, 2}}};
  const std::vector<double> found = evaluate(logsumexp(input("x", {3, 2}), {1}), bindings);
  EXPECT_EQ(found[0], -kInfinity);
  EXPECT_NEAR(found[1], 1, 1e-12);
  EXPECT_EQ(found[2], kInfinity);
}

TEST(Composites, SoftmaxAndLayerNorm) {
  const reference::Bindings bindings{{"x", {1, 2, 4, -1, 0, 3}}, {"gain", {1, 2, 3}}, {"bias", {0.5, 0, -1}}};
  const Tensor x = input("x", {2, 3});
  const std::vector<double> probabilities = evaluate(softmax(x), bindings),
                            logs = evaluate(log_softmax(x), bindings);
  const std::vector<double> normal =
      evaluate(layer_norm(x, input("gain", {3}), input("bias", {3}), 1e-3), bindings);
  for (std::size_t row = 0; row < 2; ++row) {
    const double* v = bindings.at("x").data() + 3 * row;
    const double total = std::exp(v[0]) + std::exp(v[1]) + std::exp(v[2]);
    const double mean_of = (v[0] + v[1] + v[2]) / 3;
    double variance_of = 0;
    for (int k = 0; k < 3; ++k) variance_of += (v[k] - mean_of) * (v[k] - mean_of) / 3;
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(probabilities[3 * row + k], std::exp(v[k]) / total, 1e-12);
      EXPECT_NEAR(logs[3 * row + k], v[k] - std::log(total), 1e-12);
      const double expected =
          (v[k] - mean_of) / std::sqrt(variance_of + 1e-3) * bindings.at("gain")[k] + bindings.at("bias")[k];
      EXPECT_NEAR(normal[3 * row + k], expected, 1e-6);
    }
  }
}

double image_at(const std::vector<double>& image, const Shape& shape, std::int64_t n, std::int64_t c,
                std::int64_t y, std::int64_t x, double outside) {
  if (y < 0 || x < 0 || y >= shape[2] || x >= shape[3]) return outside;
  return image[static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + y) * shape[3] + x)];
}

std::vector<double> pseudo_random(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(static_cast<double>(i * i + 3 * i) * 0.7));
  return values;
}

TEST(Composites, ConvolutionIsTheSumOverTheKernel) {
  struct Form {
    Shape image, weight;
    ConvolutionOptions options;
  };
  for (const Form& form :
       {Form{{2, 3, 7, 5}, {4, 3, 3, 2}, {}},
        Form{{1, 4, 6, 7}, {6, 2, 3, 3}, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}},
        Form{{2, 3, 5, 5}, {3, 1, 2, 2}, {.padding = 1, .groups = 3}},
        Form{{1, 2, 4, 4}, {5, 2, 1, 1}, {.stride = 3}}}) {
    const ConvolutionOptions& o = form.options;
    const reference::Bindings bindings{{"image", pseudo_random(form.image.element_count())},
                                       {"weight", pseudo_random(form.weight.element_count() + 5)},
                                       {"bias", pseudo_random(form.weight[0])}};
    reference::Bindings fed = bindings;
    fed["weight"].resize(static_cast<std::size_t>(form.weight.element_count()));
    const Tensor out = convolution(input("image", form.image), input("weight", form.weight),
                                   input("bias", {form.weight[0]}), o);
    ASSERT_TRUE(out.ok()) << out.error().message;
    const std::int64_t rows =
        (form.image[2] + 2 * o.padding[0] - o.dilation[0] * (form.weight[2] - 1) - 1) / o.stride[0] + 1;
    const std::int64_t columns =
        (form.image[3] + 2 * o.padding[0] - o.dilation[0] * (form.weight[3] - 1) - 1) / o.stride[0] + 1;
    ASSERT_EQ(out.shape(), (Shape{form.image[0], form.weight[0], rows, columns}));
    const std::vector<double> found = evaluate(out, fed);
    std::size_t position = 0;
    for (std::int64_t n = 0; n < form.image[0]; ++n)
      for (std::int64_t k = 0; k < form.weight[0]; ++k)
        for (std::int64_t y = 0; y < rows; ++y)
          for (std::int64_t x = 0; x < columns; ++x) {
            double expected = fed["bias"][static_cast<std::size_t>(k)];
            const std::int64_t group = k / (form.weight[0] / o.groups);
            for (std::int64_t c = 0; c < form.weight[1]; ++c)
              for (std::int64_t i = 0; i < form.weight[2]; ++i)
                for (std::int64_t j = 0; j < form.weight[3]; ++j)
                  expected += image_at(fed["weight"], form.weight, k, c, i, j, 0) *
                              image_at(fed["image"], form.image, n, group * form.weight[1] + c,
                                       y * o.stride[0] - o.padding[0] + i * o.dilation[0],
                                       x * o.stride[0] - o.padding[0] + j * o.dilation[0], 0);
            EXPECT_NEAR(found[position++], expected, 1e-9);
          }
  }
}

TEST(Composites, PoolsFoldTheirWindows) {
  const Shape shape{2, 3, 7, 6};
  const reference::Bindings bindings{{"image", pseudo_random(shape.element_count())}};
  for (const PoolOptions& o : {PoolOptions{.stride = 2}, PoolOptions{.size = 3, .stride = 2, .padding = 1},
                               PoolOptions{.size = 3, .stride = 1}}) {
    const Tensor image = input("image", shape);
    const std::vector<double> largest = evaluate(max_pool(image, o), bindings),
                              average = evaluate(avg_pool(image, o), bindings);
    const std::int64_t rows = (7 + 2 * o.padding[0] - o.size[0]) / o.stride[0] + 1,
                       columns = (6 + 2 * o.padding[0] - o.size[0]) / o.stride[0] + 1;
    ASSERT_EQ(static_cast<std::int64_t>(largest.size()), 6 * rows * columns);
    std::size_t position = 0;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t y = 0; y < rows; ++y)
          for (std::int64_t x = 0; x < columns; ++x) {
            double best = -kInfinity, total = 0;
            for (std::int64_t i = 0; i < o.size[0]; ++i)
              for (std::int64_t j = 0; j < o.size[0]; ++j) {
                const std::int64_t row = y * o.stride[0] - o.padding[0] + i,
                                   column = x * o.stride[0] - o.padding[0] + j;
                best = std::fmax(best, image_at(bindings.at("image"), shape, n, c, row, column, -kInfinity));
                total += image_at(bindings.at("image"), shape, n, c, row, column, 0);
              }
            EXPECT_EQ(largest[position], best);
            EXPECT_NEAR(average[position++], total / static_cast<double>(o.size[0] * o.size[0]), 1e-6);
          }
  }
}

}  // namespace
}  // namespace imprint

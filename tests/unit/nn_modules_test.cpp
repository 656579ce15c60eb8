// Layers against plain loops in double precision, and their gradients against differences; every one on the
// CPU device too.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "compute/nn/modules/convolution.h"
#include "compute/nn/modules/dropout.h"
#include "compute/nn/modules/embedding.h"
#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/norms.h"
#include "compute/nn/modules/pooling.h"
#include "compute/nn/modules/sequential.h"
#include "tests/reference/updates.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using reference::Bindings;
using reference::evaluate;
using test::expect_sound;
using test::waves;
using Numbers = std::vector<double>;

Numbers content(const Parameters& parameters, const std::string& name) {
  const Parameter* found = parameters.find(name);
  return found != nullptr ? reference::initial_values(found->variable) : Numbers();
}

std::string names(const Parameters& parameters) {
  std::string list;
  for (const Parameter& parameter : parameters)
    list += parameter.name + parameter.variable.shape().text() + (parameter.transposed ? "^T " : " ");
  return list;
}

void expect_values(const Tensor& output, const Bindings& bindings, const Numbers& expected,
                   double tolerance = 1e-6) {
  const Numbers found = evaluate(output, bindings);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

// Gradients by the input and by all parameters.
void expect_sound_module(const Tensor& output, const Tensor& x, const Numbers& values,
                         const Parameters& parameters) {
  std::vector<Tensor> leaves{x};
  for (const Parameter& parameter : parameters) leaves.push_back(parameter.value());
  expect_sound(output, {.inputs = {x}, .leaves = leaves, .bindings = {{"x", values}}});
}

TEST(Modules, Bilinear) {
  const Bilinear layer("b", 3, 2, 4, {.seed = 3});
  EXPECT_EQ(names(layer.parameters()), "weight[4, 3, 2] bias[4] ");
  const Tensor a = input("a", {5, 3}), b = input("b2", {5, 2});
  const Numbers av = waves(15, 1, 1), bv = waves(10, 1, 2), w = content(layer.parameters(), "weight"),
                c = content(layer.parameters(), "bias");
  Numbers expected;
  for (std::size_t row = 0; row < 5; ++row)
    for (std::size_t o = 0; o < 4; ++o) {
      double sum = c[o];
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 2; ++k) sum += av[3 * row + i] * w[6 * o + 2 * i + k] * bv[2 * row + k];
      expected.push_back(sum);
    }
  const Bindings bindings{{"a", av}, {"b2", bv}};
  const Tensor y = layer(a, b);
  expect_values(y, bindings, expected);
  std::vector<Tensor> leaves{a, b};
  for (const Parameter& parameter : layer.parameters()) leaves.push_back(parameter.value());
  expect_sound(y, {.inputs = {a, b}, .leaves = leaves, .bindings = bindings});
  EXPECT_NE(layer(a, a).error().message.find("bilinear 'b': found input [5, 3], expected [..., 2]"),
            std::string::npos);
}

TEST(Modules, Conv1d) {
  for (const std::int64_t groups : {1, 2}) {
    const Conv1d layer("c", 4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = groups, .seed = 5});
    const Tensor x = input("x", {2, 4, 9});
    const Numbers v = waves(72, 1, 1), w = content(layer.parameters(), "weight"),
                  b = content(layer.parameters(), "bias");
    const Tensor y = layer(x);
    ASSERT_EQ(y.shape(), (Shape{2, 6, 4}));
    Numbers expected;
    const std::int64_t inside = 4 / groups;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t o = 0; o < 6; ++o)
        for (std::int64_t t = 0; t < 4; ++t) {
          double sum = b[static_cast<std::size_t>(o)];
          for (std::int64_t c = 0; c < inside; ++c)
            for (std::int64_t k = 0; k < 3; ++k) {
              const std::int64_t at = 2 * t - 1 + 2 * k, channel = o / (6 / groups) * inside + c;
              if (at < 0 || at >= 9) continue;
              sum += v[static_cast<std::size_t>((n * 4 + channel) * 9 + at)] *
                     w[static_cast<std::size_t>((o * inside + c) * 3 + k)];
            }
          expected.push_back(sum);
        }
    expect_values(y, {{"x", v}}, expected);
    expect_sound_module(y, x, v, layer.parameters());
  }
  EXPECT_FALSE(Conv1d("c", 4, 6, 3)(input("x", {2, 3, 9})).ok());
  EXPECT_FALSE(Conv1d("c", 4, 6, 3, {.groups = 3})(input("x", {2, 4, 9})).ok());
}

TEST(Modules, Conv2dAndPools) {
  const Conv2d layer("c", 3, 4, 3, {.stride = 2, .padding = 1, .seed = 5});
  EXPECT_EQ(names(layer.parameters()), "weight[4, 3, 3, 3] bias[4] ");
  const double bound = 1 / std::sqrt(27.0);  // PyTorch's default
  for (const char* name : {"weight", "bias"})
    for (const double value : content(layer.parameters(), name)) EXPECT_LE(std::fabs(value), bound);
  const Tensor x = input("x", {2, 3, 5, 5});
  const Numbers v = waves(150, 1, 1), w = content(layer.parameters(), "weight"),
                b = content(layer.parameters(), "bias");
  Numbers expected;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t o = 0; o < 4; ++o)
      for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t s = 0; s < 3; ++s) {
          double sum = b[static_cast<std::size_t>(o)];
          for (std::int64_t k = 0; k < 27; ++k) {
            const std::int64_t row = 2 * r - 1 + k / 3 % 3, column = 2 * s - 1 + k % 3;
            if (row < 0 || row > 4 || column < 0 || column > 4) continue;
            sum += v[static_cast<std::size_t>(((n * 3 + k / 9) * 5 + row) * 5 + column)] *
                   w[static_cast<std::size_t>(o * 27 + k)];
          }
          expected.push_back(sum);
        }
  expect_values(layer(x), {{"x", v}}, expected);
  expect_sound_module(layer(x), x, v, layer.parameters());
  EXPECT_NE(layer(input("x", {2, 4, 5, 5})).error().message.find("expected [batch, 3, height, width]"),
            std::string::npos);
  EXPECT_EQ(MaxPool({.size = 2, .stride = 2})(x).shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(AvgPool({.size = 3, .stride = 1, .padding = 1})(x).shape(), (Shape{2, 3, 5, 5}));
  EXPECT_EQ(Flatten()(x).shape(), (Shape{2, 75}));
  double first = 0;
  for (std::size_t i = 0; i < 25; ++i) first += v[i] / 25;
  EXPECT_NEAR(evaluate(GlobalAvgPool()(x), {{"x", v}})[0], first, 1e-6);
  const Conv2d same("i", 3, 3, 3, {.padding = 1, .bias = false, .weight_values = {Scheme::identity}});
  expect_values(same(x), {{"x", v}}, v);
}

// (x - mean) / sqrt(variance + epsilon) of the elements that `group` maps to one number.
template <class Group>
Numbers normalised(const Numbers& x, std::size_t groups, Group group) {
  Numbers sum(groups), squares(groups), count(groups), out;
  for (std::size_t i = 0; i < x.size(); ++i) sum[group(i)] += x[i], ++count[group(i)];
  for (std::size_t i = 0; i < x.size(); ++i)
    squares[group(i)] += std::pow(x[i] - sum[group(i)] / count[group(i)], 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t g = group(i);
    out.push_back((x[i] - sum[g] / count[g]) / std::sqrt(squares[g] / count[g] + 1e-5));
  }
  return out;
}

TEST(Modules, BatchNorm) {
  const BatchNorm layer("n", 3);
  EXPECT_EQ(names(layer.parameters()), "weight[3] bias[3] ");
  EXPECT_EQ(names(layer.buffers()), "running_mean[3] running_var[3] num_batches_tracked[] ");
  const Tensor x = input("x", {4, 3, 5});
  const Numbers v = waves(60, 2, 1);
  const auto channel = [](std::size_t i) { return i / 5 % 3; };
  Pass pass("net", 1);
  const Tensor y = layer(x, pass);
  const Numbers expected = normalised(v, 3, channel);
  expect_values(y, {{"x", v}}, expected);
  expect_sound_module(y, x, v, layer.parameters());
  // Running statistics: momentum 0.1, variance of n - 1.
  std::vector<Update> updates;
  pass.finish(updates);
  EXPECT_EQ(updates.size(), 3u);
  Bindings state{{"x", v}};
  Numbers mean(3), variance(3);
  for (std::size_t i = 0; i < 60; ++i) mean[channel(i)] += v[i] / 20;
  for (std::size_t i = 0; i < 60; ++i) variance[channel(i)] += std::pow(v[i] - mean[channel(i)], 2) / 19;
  for (int batch = 0; batch < 2; ++batch) reference::run_updates(updates, state);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(state["n.running_mean"][c], 0.19 * mean[c], 1e-6);
    EXPECT_NEAR(state["n.running_var"][c], 0.81 + 0.19 * variance[c], 1e-6);
  }
  EXPECT_EQ(state["n.num_batches_tracked"], Numbers{2});
  Numbers evaluated;
  for (std::size_t i = 0; i < 60; ++i)
    evaluated.push_back((v[i] - 0.19 * mean[channel(i)]) /
                        std::sqrt(0.81 + 0.19 * variance[channel(i)] + 1e-5));
  expect_values(layer(x), state, evaluated);
  EXPECT_EQ(layer(input("x", {7, 3})).shape(), (Shape{7, 3}));
  EXPECT_FALSE(layer(input("x", {7, 4})).ok());
}

TEST(Modules, GroupInstanceAndRmsNorm) {
  const Tensor x = input("x", {2, 4, 3});
  const Numbers v = waves(24, 2, 1);
  const GroupNorm groups("g", 2, 4);
  EXPECT_EQ(names(groups.parameters()), "weight[4] bias[4] ");
  expect_values(groups(x), {{"x", v}}, normalised(v, 4, [](std::size_t i) { return i / 6; }));
  expect_sound_module(groups(x), x, v, groups.parameters());
  const GroupNorm instances = instance_norm("i", 4);
  EXPECT_TRUE(instances.parameters().empty());
  expect_values(instances(x), {{"x", v}}, normalised(v, 8, [](std::size_t i) { return i / 3; }));
  EXPECT_FALSE(GroupNorm("g", 3, 4)(x).ok());
  const RmsNorm rows("r", 3, {.epsilon = 1e-5});
  Numbers expected;
  for (std::size_t i = 0; i < 24; ++i) {
    const std::size_t row = i / 3 * 3;
    const double squares = (v[row] * v[row] + v[row + 1] * v[row + 1] + v[row + 2] * v[row + 2]) / 3;
    expected.push_back(v[i] / std::sqrt(squares + 1e-5));
  }
  expect_values(rows(x), {{"x", v}}, expected);
  expect_sound_module(rows(x), x, v, rows.parameters());
  EXPECT_EQ(RmsNorm("r", 3, {.groups = 2})(x).shape(), x.shape());
  EXPECT_FALSE(RmsNorm("r", 4)(x).ok());
}

TEST(Modules, DropoutAndNoise) {
  Pass pass("net", 5);
  const Tensor x = ones({100, 100});
  const Tensor first = Dropout(0.3)(x, pass), second = Dropout(0.3)(x, pass);
  const Numbers a = evaluate(first), b = evaluate(second);
  EXPECT_NE(a, b);
  double zeros = 0;
  for (const double value : a) {
    zeros += value == 0 ? 1 : 0;
    EXPECT_TRUE(value == 0 || std::fabs(value - 1 / 0.7) < 1e-6);
  }
  EXPECT_NEAR(zeros / 1e4, 0.3, 0.02);
  const Numbers channels = evaluate(Dropout(0.5, true)(ones({8, 16, 10}), pass));
  for (std::size_t i = 0; i < channels.size(); ++i) EXPECT_EQ(channels[i], channels[i / 10 * 10]);
  double squares = 0;
  for (const double value : evaluate(GaussianNoise(0.5)(zeros_like(x), pass))) squares += value * value;
  EXPECT_NEAR(std::sqrt(squares / 1e4), 0.5, 0.02);
  // The next run draws other numbers; an evaluation none.
  std::vector<Update> updates;
  pass.finish(updates);
  ASSERT_EQ(updates.size(), 1u);
  Bindings state;
  reference::run_updates(updates, state);
  EXPECT_NE(evaluate(first, state), a);
  EXPECT_EQ(evaluate(Dropout(0.3)(x)), Numbers(10000, 1));
  Pass evaluation;
  EXPECT_EQ(evaluate(GaussianNoise()(x, evaluation)), Numbers(10000, 1));
  EXPECT_FALSE(Dropout(2)(x, pass).ok());
}

TEST(Modules, RandomSlopes) {
  Pass pass("net", 5);
  const Tensor x = full({100, 100}, -2);
  double mean = 0, lowest = 1, highest = 0;
  for (const double value : evaluate(RRelu(0.1, 0.5)(x, pass))) {
    mean += value / -2e4;
    lowest = std::fmin(lowest, value / -2);
    highest = std::fmax(highest, value / -2);
  }
  EXPECT_NEAR(mean, 0.3, 0.005);
  EXPECT_NEAR(lowest, 0.1, 0.002);
  EXPECT_NEAR(highest, 0.5, 0.002);
  EXPECT_EQ(evaluate(RRelu()(-x, pass)), Numbers(10000, 2));
  // An evaluation has the mean slope: 11 / 48 by default, as in PyTorch.
  EXPECT_NEAR(evaluate(RRelu()(x))[0], -2 * 11.0 / 48, 1e-6);
}

TEST(Modules, Embeddings) {
  const Embedding layer("e", 5, 3, {.padding_index = 1, .seed = 2});
  const Numbers w = content(layer.parameters(), "weight");
  EXPECT_EQ(w[3], 0);
  const Tensor indices = Tensor::from_ints(std::array{4, 1, 0, 4, 9, 2}, {2, 3});
  const Tensor y = layer(indices);
  ASSERT_EQ(y.shape(), (Shape{2, 3, 3}));
  Numbers expected;
  for (const int row : {4, 1, 0, 4, 9, 2})
    for (std::size_t k = 0; k < 3; ++k)
      expected.push_back(row == 9 ? 0 : w[static_cast<std::size_t>(row) * 3 + k]);
  expect_values(y, {}, expected);
  const Tensor weight = layer.parameters()[0].value();
  const auto slope = gradients(sum(y * y), std::span(&weight, 1));
  ASSERT_TRUE(slope);
  const Numbers g = evaluate((*slope)[0]);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(g[k], 2 * w[k], 1e-6);
    EXPECT_EQ(g[3 + k], 0);
    EXPECT_EQ(g[9 + k], 0);
    EXPECT_NEAR(g[12 + k], 4 * w[12 + k], 1e-6);
  }
  EXPECT_FALSE(layer(input("x", {3})).ok());
}

TEST(Modules, Positions) {
  const Numbers table = evaluate(sinusoidal_positions(7, 6));
  for (std::size_t t = 0; t < 7; ++t)
    for (std::size_t i = 0; i < 6; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000, static_cast<double>(i / 2 * 2) / 6);
      EXPECT_NEAR(table[6 * t + i], i % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-5);
    }
  const Tensor x = input("x", {2, 5, 4});
  const Numbers v = waves(40, 1, 1);
  Numbers expected(40);
  for (std::size_t row = 0; row < 10; ++row)
    for (std::size_t i = 0; i < 2; ++i) {
      const double angle =
          (3 + static_cast<double>(row % 5)) * std::pow(100, -2 * static_cast<double>(i) / 4);
      const double a = v[4 * row + i], b = v[4 * row + 2 + i];
      expected[4 * row + i] = a * std::cos(angle) - b * std::sin(angle);
      expected[4 * row + 2 + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  expect_values(rotary(x, 100, 3), {{"x", v}}, expected, 1e-5);
  expect_sound_module(rotary(x), x, v, {});
  EXPECT_FALSE(rotary(input("x", {2, 3})).ok());
  EXPECT_FALSE(sinusoidal_positions(3, 5).ok());
  const LearnedPositions learned("p", 8, 4);
  const Numbers w = content(learned.parameters(), "weight");
  for (std::size_t i = 0; i < 40; ++i) expected[i] = v[i] + w[i % 20];
  expect_values(learned(x), {{"x", v}}, expected);
  EXPECT_FALSE(learned(input("x", {2, 9, 4})).ok());
  // Six heads: those of four, 2^-2 to 2^-8, then 2^-1 and 2^-3.
  const Numbers bias = evaluate(alibi_bias(6, 2, 3));
  const double powers[] = {-2, -4, -6, -8, -1, -3};
  for (std::size_t h = 0; h < 6; ++h) {
    EXPECT_NEAR(bias[6 * h + 0], -std::exp2(powers[h]), 1e-7);      // query 1, key 0
    EXPECT_NEAR(bias[6 * h + 3], -2 * std::exp2(powers[h]), 1e-7);  // query 2, key 0
  }
}

TEST(Modules, SequentialTrainsAndEvaluates) {
  Sequential body("net.1");
  body.add<Conv2d>(4, 4, 3, ConvOptions{.padding = 1, .seed = 2})
      .add<BatchNorm>(4)
      .activation(Activation::relu);
  Sequential network("net");
  network.add<Conv2d>(3, 4, 3, ConvOptions{.padding = 1, .seed = 1})
      .add(Residual(body))
      .add(MaxPool())
      .add(Dropout(0.5))
      .add(Flatten())
      .linear(16, 10)
      .add([](const Tensor& x) { return 2.0f * x; });
  EXPECT_EQ(names(network.parameters()),
            "0.weight[4, 3, 3, 3] 0.bias[4] 1.body.0.weight[4, 4, 3, 3] 1.body.0.bias[4] 1.body.1.weight[4] "
            "1.body.1.bias[4] 5.weight[16, 10]^T 5.bias[10] ");
  EXPECT_EQ(names(network.buffers()),
            "1.body.1.running_mean[4] 1.body.1.running_var[4] 1.body.1.num_batches_tracked[] ");
  const Tensor x = input("x", {2, 3, 4, 4});
  Pass pass("net", 3);
  const Tensor trained = network(x, pass), evaluated = network(x);
  ASSERT_TRUE(trained.ok()) << trained.error().message;
  const Bindings bindings{{"x", waves(96)}};
  EXPECT_NE(evaluate(trained, bindings), evaluate(evaluated, bindings));
  std::vector<Update> updates;
  pass.finish(updates);
  EXPECT_EQ(updates.size(), 4u);
  const std::string table = network.summary({2, 3, 4, 4});
  EXPECT_EQ(table,
            "layer  kind      output        parameters\n"
            "net.0  Conv2d    [2, 4, 4, 4]         112\n"
            "net.1  Residual  [2, 4, 4, 4]         156\n"
            "net.2  MaxPool   [2, 4, 2, 2]           0\n"
            "net.3  Dropout   [2, 4, 2, 2]           0\n"
            "net.4  Flatten   [2, 16]                0\n"
            "net.5  Linear    [2, 10]              170\n"
            "net.6  Layer     [2, 10]                0\n"
            "total                                 438\n");
  EXPECT_NE(network.summary({2, 5, 4, 4}).find("conv2d 'net.0': found input [2, 5, 4, 4]"),
            std::string::npos);
  EXPECT_EQ(evaluate(Module()(x), bindings), bindings.at("x"));
}

TEST(Modules, SequentialNamesUsualLayers) {
  Sequential brief("net"), full("net");
  brief.conv2d(3, 4, 3, {.padding = 1, .seed = 5}).batch_norm(4);
  full.add<Conv2d>(3, 4, 3, ConvOptions{.padding = 1, .seed = 5}).add<BatchNorm>(4);
  EXPECT_EQ(names(brief.parameters()), names(full.parameters()));
  EXPECT_EQ(names(brief.buffers()), names(full.buffers()));
  EXPECT_EQ(content(brief.parameters(), "0.weight"), content(full.parameters(), "0.weight"));
  // Parts without parameters are left out.
  const MaxPool pool;
  EXPECT_EQ(names(parameters_of("net", brief, "pool", pool)), names(parameters_of("net", brief)));
  static_assert(!std::is_copy_constructible_v<Pass> && !std::is_copy_assignable_v<Pass>);
}

TEST(Modules, PReluAndActivations) {
  const PRelu layer("p", 2, 0.1);
  EXPECT_EQ(names(layer.parameters()), "weight[2] ");
  const Tensor x = input("x", {1, 2, 2});
  expect_values(layer(x), {{"x", {-1, 2, 3, -4}}}, {-0.1, 2, 3, -0.4});
  expect_sound_module(layer(x), x, {-1, 2, 3, -4}, layer.parameters());
  for (int i = 0; i <= static_cast<int>(Activation::glu); ++i) {
    const auto activation = static_cast<Activation>(i);
    EXPECT_EQ(find_activation(activation_name(activation)), activation);
    const Tensor y = activate(x, activation);
    ASSERT_TRUE(y.ok()) << activation_name(activation);
    EXPECT_EQ(y.shape(), activation == Activation::glu ? (Shape{1, 2, 1}) : x.shape());
  }
  const Numbers v{-1, 2, 3, -4};
  expect_values(activate(x, Activation::relu6), {{"x", {-1, 2, 7, 3}}}, {0, 2, 6, 3});
  expect_values(activate(x, Activation::tanh_shrink), {{"x", v}},
                {-1 + std::tanh(1), 2 - std::tanh(2), 3 - std::tanh(3), -4 + std::tanh(4)});
  expect_values(
      activate(x, Activation::softmin), {{"x", v}},
      {1 / (1 + std::exp(-3)), 1 / (1 + std::exp(3)), 1 / (1 + std::exp(7)), 1 / (1 + std::exp(-7))});
}

}  // namespace
}  // namespace imprint::nn

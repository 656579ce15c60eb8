#include <gtest/gtest.h>

#include <cmath>

#include "compute/nn/modules/linear.h"
#include "compute/nn/modules/sequential.h"
#include "tests/reference/interpreter.h"

namespace imprint::nn {
namespace {

TEST(Initialise, OrthogonalRowsOrColumns) {
  for (auto [rows, columns] : {std::pair<std::int64_t, std::int64_t>{5, 17}, {17, 5}, {64, 64}, {1, 3}}) {
    const std::vector<float> w =
        initial_values({Scheme::orthogonal, 1.5}, "w", {.rows = rows, .columns = columns, .seed = 9});
    const bool wide = rows <= columns;
    const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    for (std::int64_t a = 0; a < count; ++a)
      for (std::int64_t b = 0; b <= a; ++b) {
        double product = 0;
        for (std::int64_t k = 0; k < length; ++k) {
          const auto at = [&](std::int64_t vector) {
            return static_cast<std::size_t>(wide ? vector * columns + k : k * columns + vector);
          };
          product += static_cast<double>(w[at(a)]) * w[at(b)];
        }
        EXPECT_NEAR(product, a == b ? 2.25 : 0, 1e-5) << rows << "x" << columns;
      }
  }
}

struct WeightMoments {
  double mean = 0, deviation = 0, largest = 0;
};

WeightMoments moments_of(const Initialisation& initialisation) {
  const std::vector<float> values = initial_values(
      initialisation, "w", {.rows = 200, .columns = 300, .fan_in = 200, .fan_out = 300, .seed = 3});
  WeightMoments m;
  for (float value : values)
    m.mean += value / 60000.0, m.deviation += value * value / 60000.0,
        m.largest = std::fmax(m.largest, std::fabs(value));
  m.deviation = std::sqrt(m.deviation - m.mean * m.mean);
  return m;
}

TEST(Initialise, SpreadsOfTheSchemes) {
  const auto expect_uniform = [](const Initialisation& initialisation, double bound) {
    const WeightMoments m = moments_of(initialisation);
    EXPECT_LE(m.largest, bound * (1 + 1e-6));
    EXPECT_GT(m.largest, bound * 0.999);
    EXPECT_NEAR(m.mean, 0, 0.01 * bound);
    EXPECT_NEAR(m.deviation, bound / std::sqrt(3.0), 0.01 * bound);
  };
  const auto expect_normal = [](const Initialisation& initialisation, double deviation) {
    const WeightMoments m = moments_of(initialisation);
    EXPECT_NEAR(m.mean, 0, 0.02 * deviation);
    EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation);
    EXPECT_GT(m.largest, 3.5 * deviation);
  };
  expect_uniform({Scheme::uniform_fan_in}, 1 / std::sqrt(200.0));
  expect_uniform({Scheme::kaiming_uniform, 2}, 2 * std::sqrt(3 / 200.0));
  expect_uniform({Scheme::xavier_uniform}, std::sqrt(6 / 500.0));
  expect_normal({Scheme::kaiming_normal, std::sqrt(2.0)}, std::sqrt(2 / 200.0));
  expect_normal({Scheme::xavier_normal}, std::sqrt(2 / 500.0));
  EXPECT_EQ(moments_of({Scheme::zeros}).largest, 0);
  EXPECT_EQ(moments_of({Scheme::ones}).mean > 0.999, true);
}

TEST(Initialise, KeyedBySeedNameAndGroup) {
  for (Scheme scheme : {Scheme::orthogonal, Scheme::kaiming_normal, Scheme::uniform_fan_in}) {
    const InitialValues wanted{.rows = 4, .columns = 6, .fan_in = 4, .groups = 3, .seed = 5};
    const std::vector<float> all = initial_values({scheme}, "a.weight", wanted);
    ASSERT_EQ(all.size(), 72u);
    EXPECT_EQ(all, initial_values({scheme}, "a.weight", wanted));
    EXPECT_NE(all, initial_values({scheme}, "b.weight", wanted));
    InitialValues other = wanted;
    other.seed = 5 + (std::uint64_t{1} << 32);
    EXPECT_NE(all, initial_values({scheme}, "a.weight", other));
    other = wanted;
    other.groups = 0;
    other.first_group = 2;
    EXPECT_EQ(std::vector<float>(all.begin() + 48, all.end()), initial_values({scheme}, "a.weight", other));
  }
}

TEST(Layers, LinearMultipliesRowsByTheWeight) {
  const Linear layer("l", 3, 2, {.seed = 1});
  EXPECT_EQ(layer.weight().shape(), (Shape{3, 2}));
  EXPECT_EQ(layer.bias().shape(), Shape{2});
  EXPECT_EQ(layer.parameters()[0].name, "weight");
  const reference::Bindings bindings{
      {"x", {1, 2, 3}}, {"l.weight", {1, 10, 2, 20, 3, 30}}, {"l.bias", {0.5, -0.5}}};
  EXPECT_EQ(reference::evaluate(layer(input("x", {1, 3})), bindings), (std::vector<double>{14.5, 139.5}));
  EXPECT_EQ(layer(input("x", {3})).shape(), Shape{2});
  EXPECT_EQ(layer(input("x", {4, 5, 3})).shape(), (Shape{4, 5, 2}));
  EXPECT_NE(
      layer(input("x", {1, 4})).error().message.find("linear 'l': found input [1, 4], expected [..., 3]"),
      std::string::npos);
  const Linear unbiased("u", 3, 2, {.bias = false});
  EXPECT_EQ(unbiased.parameters().size(), 1u);
  EXPECT_EQ(unbiased(input("x", {1, 3})).shape(), (Shape{1, 2}));
}

TEST(Layers, SequentialNamesByPosition) {
  const Sequential network = mlp("policy", {4, 8, 3}, {.activation = Activation::tanh, .layer_norm = true});
  std::vector<std::string> names, variables;
  for (const Parameter& parameter : network.parameters())
    names.push_back(parameter.name), variables.push_back(parameter.variable.name());
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"}));
  EXPECT_EQ(variables[4], "policy.3.weight");
  EXPECT_EQ(network.parameters().element_count(), 4 * 8 + 8 + 8 + 8 + 8 * 3 + 3);
  EXPECT_NE(network.parameters().find("1.weight"), nullptr);
  EXPECT_EQ(network.parameters().find("weight"), nullptr);
  EXPECT_EQ(network(input("x", {5, 4})).shape(), (Shape{5, 3}));
  Parameters all;
  all.add("policy", network.parameters());
  EXPECT_EQ(all[0].name, "policy.0.weight");
}

TEST(Layers, GroupsAreNetworksSideBySide) {
  const MlpOptions options{.activation = Activation::silu, .layer_norm = true, .groups = 3, .seed = 11};
  const Sequential kennel = mlp("n", {4, 6, 2}, options);
  EXPECT_EQ(kennel.parameters()[0].variable.shape(), (Shape{3, 4, 6}));
  EXPECT_EQ(kennel.parameters()[1].variable.shape(), (Shape{3, 1, 6}));
  std::vector<double> x;
  for (int i = 0; i < 3 * 5 * 4; ++i) x.push_back(std::sin(i * 1.3));
  const std::vector<double> together = reference::evaluate(kennel(input("x", {3, 5, 4})), {{"x", x}});
  const Sequential alone = mlp("n", {4, 6, 2}, {.activation = Activation::silu, .layer_norm = true});
  for (std::size_t group = 0; group < 3; ++group) {
    reference::Bindings bindings{
        {"x", std::vector<double>(x.begin() + static_cast<std::ptrdiff_t>(20 * group),
                                  x.begin() + static_cast<std::ptrdiff_t>(20 * group + 20))}};
    for (std::size_t i = 0; i < alone.parameters().size(); ++i) {
      const std::vector<double> values = reference::initial_values(kennel.parameters()[i].variable);
      const auto count = static_cast<std::ptrdiff_t>(values.size() / 3),
                 first = static_cast<std::ptrdiff_t>(group) * count;
      bindings[alone.parameters()[i].variable.name()] =
          std::vector<double>(values.begin() + first, values.begin() + first + count);
    }
    const std::vector<double> expected = reference::evaluate(alone(input("x", {5, 4})), bindings);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(together[10 * group + i], expected[i], 1e-12);
  }
  EXPECT_FALSE(kennel(input("x", {5, 4})).ok());
}

TEST(Layers, ActivationsByName) {
  for (Activation activation :
       {Activation::identity, Activation::relu, Activation::hard_swish, Activation::gelu}) {
    EXPECT_EQ(find_activation(activation_name(activation)), activation);
    EXPECT_EQ(activate(input("x", {3}), activation).shape(), Shape{3});
  }
  EXPECT_FALSE(find_activation("swoosh"));
}

}  // namespace
}  // namespace imprint::nn

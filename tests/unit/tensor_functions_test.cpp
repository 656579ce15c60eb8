// Gradients of the caller's own, functions for each element, quantised weights and random distributions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compute/graph/gradients/autodiff.h"
#include "compute/tensor/composites/composites.h"
#include "compute/tensor/functions.h"
#include "compute/tensor/ops/quantised.h"
#include "tests/reference/interpreter.h"

namespace imprint {
namespace {

using reference::evaluate;
using Numbers = std::vector<double>;
using List = std::span<const Tensor>;

std::string failure_of(const Tensor& x) { return x.ok() ? "ok" : x.error().message; }

TEST(WithGradient, TheCallersBackwardCounts) {
  const Tensor x = Tensor::from({-1.4f, 0.3f, 2.6f}, {3});
  // A step whose derivative is 1: a straight-through estimator.
  const auto rounded = with_gradient([](List of) { return std::vector{round(of[0])}; },
                                     [](List, List, List g) { return std::vector{g[0]}; }, std::span(&x, 1));
  EXPECT_EQ(evaluate(rounded[0], {}), (Numbers{-1, 0, 3}));
  const auto gradient = gradients(sum(square(rounded[0])), std::span(&x, 1));
  ASSERT_TRUE(gradient) << gradient.error().message;
  EXPECT_EQ(evaluate((*gradient)[0], {}), (Numbers{-2, 0, 6}));
}

TEST(WithGradient, SeveralOutputsAndSecondDerivatives) {
  const Tensor inputs[] = {Tensor::from({2, 3}, {2}), Tensor::from({5, 7}, {2})};
  const auto both = with_gradient(
      [](List of) {
        return std::vector{of[0] * of[0], sum(of[1])};
      },
      [](List of, List, List g) {
        return std::vector{g[0] * of[0] * 2.0f, expand(unsqueeze(g[1], 0), {2})};
      },
      inputs);
  const auto first = gradients(sum(both[0]) * 3.0f, inputs);  // nothing arrives at the second output
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(evaluate((*first)[0], {}), (Numbers{12, 18}));
  EXPECT_EQ(evaluate((*first)[1], {}), (Numbers{0, 0}));
  const auto second = gradients(sum((*first)[0]), std::span(inputs, 1));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(evaluate((*second)[0], {}), (Numbers{6, 6}));
  const auto wrong =
      with_gradient([](List of) { return std::vector{of[0]}; },
                    [](List, List, List) { return std::vector<Tensor>(); }, std::span(inputs, 1));
  const auto refused = gradients(sum(wrong[0]), std::span(inputs, 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("with_gradient"), std::string::npos);
}

TEST(Vmap, EveryRuleAgreesWithEachElementAlone) {
  std::vector<float> values(3 * 4 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 29) % 31) / 8 - 2;
  const Tensor x = Tensor::from(values, {3, 4, 5}), shared = ones({5, 2}) * 0.5f;
  const Tensor places = Tensor::from_ints(std::vector{0, 3, 1, 2, 2, 9, 3, 0, -1}, {3, 3});
  const std::vector<std::pair<std::int64_t, std::int64_t>> sides{{1, 0}, {0, 2}};
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> functions{
      [](const Tensor& a, const Tensor&) {
        return reshape(permute(a, {1, 0}), {2, 10}) + 1.0f;
      },
      [&](const Tensor& a, const Tensor&) { return pad(slice(a, 1, 4, 0, -2), sides, 7); },
      [&](const Tensor& a, const Tensor&) { return matmul(a, shared); },
      [](const Tensor& a, const Tensor&) { return matmul(a, transpose(a)); },
      [](const Tensor& a, const Tensor&) { return softmax(window(a, 1, 3, 2), 0); },
      [](const Tensor& a, const Tensor& i) { return take(a, 0, i); },
      [](const Tensor& a, const Tensor& i) { return take(a, 1, i); },
      [](const Tensor& a, const Tensor& i) { return take(arange(5), 0, i) + cast(sum(a), DType::int32); },
      [](const Tensor& a, const Tensor&) {
        return take(a, 1, Tensor::from_ints(std::vector{4, 0}, {2}));
      },
      [](const Tensor& a, const Tensor& i) {
        return scatter_add(zeros({4}), 0, i, reshape(narrow(narrow(a, 0, 0, 1), 1, 0, 3), {3}));
      },
      [](const Tensor& a, const Tensor& i) { return gather(narrow(a, 1, 0, 1), 0, unsqueeze(i, 1)); },
      [](const Tensor& a, const Tensor&) { return argmax(a, 1); },
      [](const Tensor& a, const Tensor&) { return topk(a, 2, 0).values; },
      [](const Tensor&, const Tensor&) { return ones({2}); },
  };
  for (std::size_t k = 0; k < functions.size(); ++k) {
    const auto& f = functions[k];
    const Tensor inputs[] = {x, places};
    const std::vector<Tensor> found = vmap([&](List of) { return std::vector{f(of[0], of[1])}; }, inputs);
    ASSERT_TRUE(found[0].ok()) << k << ": " << failure_of(found[0]);
    std::vector<Tensor> each;
    for (int i = 0; i < 3; ++i)
      each.push_back(f(squeeze(narrow(x, 0, i, 1), 0), squeeze(narrow(places, 0, i, 1), 0)));
    const Tensor expected = stack(each, 0);
    ASSERT_TRUE(expected.ok()) << k << ": " << failure_of(expected);
    ASSERT_EQ(found[0].shape(), expected.shape()) << k;
    EXPECT_EQ(evaluate(found[0], {}), evaluate(expected, {})) << k;
  }
}

TEST(Vmap, GradientsPerElement) {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}), weight = Tensor::from({1, -1}, {2});
  // The elements are columns.
  const auto found = vmap(
      [&](List of) {
        const auto gradient = gradients(sum(square(of[0]) * weight), of);
        return gradient ? *gradient : std::vector<Tensor>{Tensor(gradient.error())};
      },
      std::span(&x, 1), 1);
  ASSERT_TRUE(found[0].ok()) << failure_of(found[0]);
  EXPECT_EQ(evaluate(found[0], {}), (Numbers{2, -8, 4, -10, 6, -12}));
}

TEST(Vmap, Errors) {
  const auto same = [](List of) { return std::vector<Tensor>(of.begin(), of.end()); };
  const Tensor uneven[] = {zeros({2, 3}), zeros({3})};
  EXPECT_NE(failure_of(vmap(same, uneven)[0]).find("expected 2 elements"), std::string::npos);
  const Tensor deep = zeros({1, 1, 1, 1, 1, 1, 1, 2}), many = zeros({2000, 3});
  EXPECT_NE(failure_of(vmap([](List of) { return std::vector{unsqueeze(of[0], 0)}; }, std::span(&deep, 1))[0])
                .find("at most 7 axes"),
            std::string::npos);
  EXPECT_NE(failure_of(vmap([](List of) { return std::vector{argsort(of[0])}; }, std::span(&many, 1))[0])
                .find("2000 elements"),
            std::string::npos);
  EXPECT_NE(failure_of(vmap(same, std::span(&many, 1), 2)[0]).find("axis 2"), std::string::npos);
  EXPECT_NE(failure_of(vmap(same, {})[0]).find("found no element"), std::string::npos);
}

TEST(Quantised, BitsAndScales) {
  const Tensor weight = Tensor::from({7, 0, -3.5f, 0, 1, 0, 14, 0}, {4, 2});
  for (const int bits : {8, 4}) {
    const QuantisedWeights stored = quantise(weight, bits, 2);
    EXPECT_EQ(stored.values.shape(), (Shape{2, bits == 8 ? 4 : 2}));
    const Numbers scales = evaluate(stored.scales, {}), back = evaluate(dequantise(stored), {});
    EXPECT_NEAR(scales[0], bits == 8 ? 7.0 / 127 : 1, 1e-6);
    EXPECT_NEAR(scales[1], bits == 8 ? 14.0 / 127 : 2, 1e-6);
    const Numbers original = evaluate(weight, {});
    for (std::size_t i = 0; i < 8; ++i)  // half a step
      EXPECT_LE(std::fabs(back[i] - original[i]), scales[i / 4] * 0.501) << i;
  }
  // -3.5 rounds to even: -4 + 8; 7 + 8 in the lower bits.
  EXPECT_EQ(evaluate(cast(quantise(weight, 4, 2).values, DType::int32), {})[0], 15 + 16 * 4);
  EXPECT_NE(failure_of(quantise(weight, 4, 3).values).find("blocks of 3"), std::string::npos);
  EXPECT_NE(failure_of(dequantise({zeros({2, 4}), zeros({2, 2})})).find("float32 values"), std::string::npos);
  EXPECT_NE(failure_of(dequantise({})).find("uninitialised"), std::string::npos);
}

TEST(Distributions, GammaAndMultinomial) {
  const Tensor generator = Tensor::from_ints(std::vector{7, 0, 3, 0}, {4});
  for (const double alpha : {0.3, 1.0, 4.5}) {
    const Numbers found = evaluate(random_gamma(generator, full({4000}, alpha), 5), {});
    double mean = 0, square = 0;
    for (const double value : found) mean += value / 4000, square += value * value / 4000;
    EXPECT_NEAR(mean, alpha, 4 * std::sqrt(alpha / 4000)) << alpha;
    EXPECT_NEAR(square - mean * mean, alpha, 0.25 * alpha) << alpha;
  }
  EXPECT_TRUE(std::isnan(evaluate(random_gamma(generator, full({1}, -1), 5), {})[0]));
  EXPECT_EQ(random_gamma(generator, zeros({0, 3}), 5).shape(), (Shape{0, 3}));
  const Tensor logits = log(Tensor::from({0.5f, 0, 0.125f, 0.375f}, {4}));
  Numbers counts(4);
  for (const double drawn : evaluate(random_multinomial(generator, logits, 4000, 6), {}))
    counts[static_cast<std::size_t>(drawn)] += 1.0 / 4000;
  EXPECT_NEAR(counts[0], 0.5, 0.04);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 0.125, 0.03);
  Numbers three = evaluate(random_multinomial(generator, logits, 3, 6, false), {});
  std::sort(three.begin(), three.end());
  EXPECT_EQ(three, (Numbers{0, 2, 3}));
  EXPECT_NE(failure_of(random_multinomial(generator, logits, 5, 6, false)).find("at most one per class"),
            std::string::npos);
}

TEST(Letters, FurtherAxes) {
  const Tensor a = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}), b = Tensor::from({1, 10}, {2});
  EXPECT_EQ(evaluate(einsum("...k,k->...", {a, b}), {}), (Numbers{21, 43, 65, 87}));
  EXPECT_EQ(evaluate(einsum("...k,k", {a, b}), {}), (Numbers{21, 43, 65, 87}));
  EXPECT_EQ(einsum("i...,...j->ij...", {zeros({2, 3, 4}), zeros({4, 5})}).shape(), (Shape{2, 5, 3, 4}));
  EXPECT_FALSE(einsum("i..k,k->i", {a, b}).ok());
}

}  // namespace
}  // namespace imprint

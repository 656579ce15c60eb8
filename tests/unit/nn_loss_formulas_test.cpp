// Losses against their published formulas, computed here in double precision with PyTorch's conventions.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "compute/nn/losses/losses.h"
#include "tests/unit/nn_check.h"

namespace imprint::nn {
namespace {

using reference::evaluate;
using test::expect_sound;
using test::waves;
using Numbers = std::vector<double>;

const Tensor kX = input("x", {3, 4}), kT = input("t", {3, 4});

// One loss per element, summed and averaged, against `formula`; gradients by the prediction.
void expect_elements(const std::function<Tensor(Reduction)>& loss,
                     const std::function<double(double, double)>& formula, const Numbers& x,
                     const Numbers& t) {
  const reference::Bindings bindings{{"x", x}, {"t", t}};
  const Numbers found = evaluate(loss(Reduction::none), bindings);
  double total = 0;
  ASSERT_EQ(found.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(found[i], formula(x[i], t[i]), 1e-6) << "element " << i;
    total += formula(x[i], t[i]);
  }
  EXPECT_NEAR(evaluate(loss(Reduction::sum), bindings)[0], total, 1e-5);
  EXPECT_NEAR(evaluate(loss(Reduction::mean), bindings)[0], total / 12, 1e-6);
  EXPECT_NEAR(evaluate(loss(Reduction::batch_mean), bindings)[0], total / 3, 1e-5);
  expect_sound(loss(Reduction::none), {.inputs = {kX, kT}, .leaves = {kX}, .bindings = bindings});
}

const Numbers kSome = waves(12, 2, 1), kOther = waves(12, 2, 4);
Numbers shares(const Numbers& values) {  // in (0, 1)
  Numbers out;
  for (double value : values) out.push_back(static_cast<float>(0.5 + 0.2 * value));
  return out;
}
Numbers signs(const Numbers& values) {
  Numbers out;
  for (double value : values) out.push_back(value > 0 ? 1 : -1);
  return out;
}

TEST(LossFormulas, Numbers) {
  expect_elements([](Reduction r) { return l1_loss(kX, kT, r); },
                  [](double x, double t) { return std::fabs(x - t); }, kSome, kOther);
  for (const double beta : {0.5, 2.0})
    expect_elements([&](Reduction r) { return smooth_l1_loss(kX, kT, beta, r); },
                    [&](double x, double t) {
                      const double d = std::fabs(x - t);
                      return d < beta ? d * d / (2 * beta) : d - beta / 2;
                    },
                    kSome, kOther);
  expect_elements([](Reduction r) { return smooth_l1_loss(kX, kT, 0, r); },
                  [](double x, double t) { return std::fabs(x - t); }, kSome, kOther);
}

TEST(LossFormulas, Poisson) {
  const Numbers counts{0, 1, 2, 3, 0, 5, 1, 1, 2, 7, 0, 4};
  const auto stirling = [](double t) {
    return t > 1 ? t * std::log(t) - t + 0.5 * std::log(2 * std::numbers::pi * t) : 0;
  };
  for (const bool full : {false, true}) {
    expect_elements([&](Reduction r) { return poisson_nll_loss(kX, kT, {.full = full, .reduction = r}); },
                    [&](double x, double t) { return std::exp(x) - t * x + (full ? stirling(t) : 0); }, kSome,
                    counts);
    expect_elements(
        [&](Reduction r) {
          return poisson_nll_loss(kX, kT, {.log_input = false, .full = full, .reduction = r});
        },
        [&](double x, double t) { return x - t * std::log(x + 1e-8) + (full ? stirling(t) : 0); },
        shares(kSome), counts);
  }
}

TEST(LossFormulas, Gaussian) {
  const Tensor variance = input("v", {3, 1});
  const Numbers v{0.5, 2, 1e-9};
  const Numbers x = kSome;
  Numbers t = kOther;
  for (std::size_t i = 8; i < 12; ++i) t[i] = x[i] + 1e-3 * static_cast<double>(i);
  const reference::Bindings bindings{{"x", x}, {"t", t}, {"v", v}};
  for (const bool full : {false, true}) {
    const Tensor loss =
        gaussian_nll_loss(kX, kT, variance, {.full = full, .epsilon = 1e-4, .reduction = Reduction::none});
    const Numbers found = evaluate(loss, bindings);
    for (std::size_t i = 0; i < 12; ++i) {
      const double spread = std::max(v[i / 4], 1e-4), d = x[i] - t[i];
      const double expected =
          0.5 * (std::log(spread) + d * d / spread) + (full ? 0.5 * std::log(2 * std::numbers::pi) : 0);
      EXPECT_NEAR(found[i], expected, 1e-6) << i;
    }
  }
  const Tensor loss = gaussian_nll_loss(kX, kT, variance, {.reduction = Reduction::none});
  expect_sound(loss, {.inputs = {kX, kT, variance},
                      .leaves = {kX, variance},
                      .bindings = {{"x", x}, {"t", t}, {"v", {0.5, 2, 1}}}});
  EXPECT_FALSE(gaussian_nll_loss(kX, kT, input("v", {2, 4})).ok());
}

TEST(LossFormulas, YesOrNo) {
  const Numbers targets = shares(kOther);
  expect_elements([](Reduction r) { return binary_cross_entropy(kX, kT, r); },
                  [](double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); },
                  shares(kSome), targets);
  expect_elements([](Reduction r) { return binary_cross_entropy_with_logits(kX, kT, r); },
                  [](double x, double t) {
                    const double p = 1 / (1 + std::exp(-x));
                    return -t * std::log(p) - (1 - t) * std::log(1 - p);
                  },
                  kSome, targets);
  const Tensor more = Tensor::from({1, 2, 3, 4}, {4});
  const reference::Bindings bindings{{"x", kSome}, {"t", targets}};
  const Numbers found =
      evaluate(binary_cross_entropy_with_logits(kX, kT, Reduction::none, Tensor(), more), bindings);
  for (std::size_t i = 0; i < 12; ++i) {
    const double p = 1 / (1 + std::exp(-kSome[i])), w = static_cast<double>(i % 4 + 1);
    EXPECT_NEAR(found[i], -w * targets[i] * std::log(p) - (1 - targets[i]) * std::log(1 - p), 1e-6);
  }
  // Certain and wrong: 100 per element, and nothing that is not finite.
  const Tensor certain = binary_cross_entropy(kX, kT);
  const auto slope = gradients(certain, std::array{kX});
  ASSERT_TRUE(slope);
  const reference::Bindings extreme{{"x", Numbers(12, 0)}, {"t", Numbers(12, 1)}};
  EXPECT_NEAR(evaluate(certain, extreme)[0], 100, 1e-5);
  for (double value : evaluate((*slope)[0], extreme)) EXPECT_TRUE(std::isfinite(value));
  const Tensor far = binary_cross_entropy_with_logits(kX, kT, Reduction::none);
  EXPECT_NEAR(evaluate(far, {{"x", Numbers(12, -800)}, {"t", Numbers(12, 1)}})[0], 800, 1e-4);
}

TEST(LossFormulas, Focal) {
  const Numbers targets = signs(kOther);
  Numbers zeros_and_ones;
  for (double sign : targets) zeros_and_ones.push_back(sign > 0 ? 1 : 0);
  for (const double gamma : {2.0, 1.5, 0.0})
    for (const double alpha : {0.25, -1.0})
      expect_elements(
          [&](Reduction r) { return focal_loss(kX, kT, {.gamma = gamma, .alpha = alpha, .reduction = r}); },
          [&](double x, double t) {
            const double p = 1 / (1 + std::exp(-x)), q = t > 0 ? p : 1 - p;
            const double share = alpha < 0 ? 1 : t > 0 ? alpha : 1 - alpha;
            return -share * std::pow(1 - q, gamma) * std::log(q);
          },
          kSome, zeros_and_ones);
}

TEST(LossFormulas, Dice) {
  const Numbers p = shares(kSome), t = shares(kOther);
  for (const bool squares : {false, true}) {
    const Tensor loss = dice_loss(kX, kT, {.smooth = 0.5, .squares = squares, .reduction = Reduction::none});
    const reference::Bindings bindings{{"x", p}, {"t", t}};
    const Numbers found = evaluate(loss, bindings);
    for (std::size_t row = 0; row < 3; ++row) {
      double both = 0, either = 0;
      for (std::size_t k = 4 * row; k < 4 * row + 4; ++k) {
        both += p[k] * t[k];
        either += squares ? p[k] * p[k] + t[k] * t[k] : p[k] + t[k];
      }
      EXPECT_NEAR(found[row], 1 - (2 * both + 0.5) / (either + 0.5), 1e-7);
    }
    expect_sound(loss, {.inputs = {kX, kT}, .leaves = {kX}, .bindings = bindings});
  }
  EXPECT_FALSE(dice_loss(input("p", {3}), input("q", {3})).ok());
}

TEST(LossFormulas, Margins) {
  const Numbers label = signs(kOther);
  expect_elements([](Reduction r) { return hinge_loss(kX, kT, r); },
                  [](double x, double y) { return std::fmax(0, 1 - y * x); }, kSome, label);
  expect_elements([](Reduction r) { return hinge_embedding_loss(kX, kT, 1.5, r); },
                  [](double x, double y) { return y > 0 ? x : std::fmax(0, 1.5 - x); }, kSome, label);
  const Tensor second = Tensor::from({0.5f, -0.5f, 1, -1}, {4});
  expect_elements(
      [&](Reduction r) {
        return margin_ranking_loss(kX, expand(second, {3, 4}), kT, 0.25, r);
      },
      [&, i = 0](double x, double y) mutable {
        const double s[] = {0.5, -0.5, 1, -1};
        return std::fmax(0, 0.25 - y * (x - s[i++ / 2 % 4]));
      },
      kSome, label);
}

double norm(const Numbers& a, const Numbers& b, std::size_t row, double p) {
  double sum = 0;
  for (std::size_t k = 4 * row; k < 4 * row + 4; ++k) sum += std::pow(std::fabs(a[k] - b[k] + 1e-6), p);
  return std::pow(sum, 1 / p);
}

TEST(LossFormulas, Distances) {
  const Tensor n = input("n", {3, 4}), label = input("y", {3});
  const Numbers a = kSome, b = kOther, c = waves(12, 1, 6), y{1, -1, 1};
  const reference::Bindings bindings{{"x", a}, {"t", b}, {"n", c}, {"y", y}};
  for (const double p : {1.0, 2.0, 3.0})
    for (const bool swap : {false, true}) {
      const Tensor loss =
          triplet_margin_loss(kX, kT, n, {.margin = 1.5, .p = p, .swap = swap, .reduction = Reduction::none});
      const Numbers found = evaluate(loss, bindings);
      for (std::size_t row = 0; row < 3; ++row) {
        const double far = swap ? std::fmin(norm(a, c, row, p), norm(b, c, row, p)) : norm(a, c, row, p);
        EXPECT_NEAR(found[row], std::fmax(0, norm(a, b, row, p) - far + 1.5), 1e-6);
      }
      expect_sound(loss, {.inputs = {kX, kT, n}, .leaves = {kX, kT, n}, .bindings = bindings});
    }
  const Tensor angles = cosine_embedding_loss(kX, kT, label, 0.1, Reduction::none);
  const Tensor pairs = contrastive_loss(kX, kT, 0.5f * (label + 1.0f), 3, Reduction::none);
  const Numbers found = evaluate(angles, bindings), apart = evaluate(pairs, bindings);
  for (std::size_t row = 0; row < 3; ++row) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t k = 4 * row; k < 4 * row + 4; ++k)
      ab += a[k] * b[k], aa += a[k] * a[k], bb += b[k] * b[k];
    const double cosine = ab / std::sqrt(aa * bb), d = norm(a, b, row, 2);
    EXPECT_NEAR(found[row], y[row] > 0 ? 1 - cosine : std::fmax(0, cosine - 0.1), 1e-6);
    EXPECT_NEAR(apart[row], 0.5 * (y[row] > 0 ? d * d : std::pow(std::fmax(0, 3 - d), 2)), 1e-5);
  }
  for (const Tensor& loss : {angles, pairs})
    expect_sound(loss, {.inputs = {kX, kT, label}, .leaves = {kX, kT}, .bindings = bindings});
  EXPECT_FALSE(cosine_embedding_loss(kX, kT, input("y", {4})).ok());
  EXPECT_FALSE(pairwise_distance(kX, kT, 0.5).ok());
}

Numbers log_softmax_of(const Numbers& x, std::size_t row) {
  double total = 0;
  for (std::size_t k = 0; k < 4; ++k) total += std::exp(x[4 * row + k]);
  Numbers out;
  for (std::size_t k = 0; k < 4; ++k) out.push_back(x[4 * row + k] - std::log(total));
  return out;
}

TEST(LossFormulas, ClassesByIndex) {
  // PyTorch: the mean divides by the sum of the weights of the targets that are not ignored; smoothing adds
  // eps / classes of the weighted losses of all classes.
  const Tensor target = Tensor::from_ints(std::array{2, -100, 1}, {3});
  const std::array wanted{2, -1, 1};
  const Numbers w{0.5, 1.5, 2, 1};
  const reference::Bindings bindings{{"x", kSome}};
  for (const double smoothing : {0.0, 0.2})
    for (const bool has_weights : {false, true}) {
      ClassLossOptions options{.label_smoothing = smoothing};
      if (has_weights) options.class_weight = Tensor::from({0.5f, 1.5f, 2, 1}, {4});
      double total = 0, divisor = 0;
      Numbers rows;
      for (std::size_t row = 0; row < 3; ++row) {
        if (wanted[row] < 0) {
          rows.push_back(0);
          continue;
        }
        const Numbers logs = log_softmax_of(kSome, row);
        double smooth = 0;
        const auto weight = [&](std::size_t k) { return has_weights ? w[k] : 1; };
        for (std::size_t k = 0; k < 4; ++k) smooth -= weight(k) * logs[k];
        const auto k = static_cast<std::size_t>(wanted[row]);
        rows.push_back(-(1 - smoothing) * weight(k) * logs[k] + smoothing / 4 * smooth);
        total += rows.back();
        divisor += weight(k);
      }
      EXPECT_NEAR(evaluate(cross_entropy(kX, target, options), bindings)[0], total / divisor, 1e-6);
      options.reduction = Reduction::group_mean;
      EXPECT_EQ(cross_entropy(reshape(kX, {3, 1, 4}), reshape(target, {3, 1}), options).shape(), Shape{3});
      options.reduction = Reduction::none;
      const Tensor each = cross_entropy(kX, target, options);
      const Numbers found = evaluate(each, bindings);
      for (std::size_t row = 0; row < 3; ++row) EXPECT_NEAR(found[row], rows[row], 1e-6);
      const Numbers by_logs = evaluate(nll_loss(log_softmax(kX), target, options), bindings);
      for (std::size_t row = 0; row < 3; ++row) EXPECT_NEAR(by_logs[row], rows[row], 1e-6);
      options.reduction = Reduction::mean;
      expect_sound(cross_entropy(kX, target, options),
                   {.inputs = {kX}, .leaves = {kX}, .bindings = bindings});
    }
  // Every target ignored, or ignored by another number.
  const Tensor none = Tensor::from_ints(std::array{-100, -100, -100}, {3});
  EXPECT_EQ(evaluate(cross_entropy(kX, none, ClassLossOptions{}), bindings)[0], 0);
  const Tensor others = Tensor::from_ints(std::array{2, 1, 1}, {3});
  EXPECT_NEAR(evaluate(cross_entropy(kX, others, {.ignore_index = 1}), bindings)[0],
              -log_softmax_of(kSome, 0)[2], 1e-6);
}

TEST(LossFormulas, ClassesByProbability) {
  const Tensor target = input("t", {3, 4});
  Numbers t = shares(kOther);
  t[5] = 0;
  const Numbers w{0.5, 1.5, 2, 1};
  const reference::Bindings bindings{{"x", kSome}, {"t", t}};
  for (const double smoothing : {0.0, 0.2}) {
    const Tensor loss = cross_entropy(
        kX, target, {.class_weight = Tensor::from({0.5f, 1.5f, 2, 1}, {4}), .label_smoothing = smoothing});
    double total = 0;
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t k = 0; k < 4; ++k)
        total -= w[k] * (t[4 * row + k] * (1 - smoothing) + smoothing / 4) * log_softmax_of(kSome, row)[k];
    EXPECT_NEAR(evaluate(loss, bindings)[0], total / 3, 1e-6);
    expect_sound(loss, {.inputs = {kX, target}, .leaves = {kX, target}, .bindings = bindings});
  }
  const Numbers masked{-INFINITY, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4}, hard{0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0};
  EXPECT_TRUE(std::isfinite(
      evaluate(cross_entropy(kX, target, ClassLossOptions{}), {{"x", masked}, {"t", hard}})[0]));
}

TEST(LossFormulas, KullbackLeibler) {
  Numbers t = shares(kOther);
  t[3] = 0;
  expect_elements([](Reduction r) { return kl_divergence(kX, kT, false, r); },
                  [](double x, double p) { return p > 0 ? p * (std::log(p) - x) : 0; }, kSome, t);
  expect_elements([](Reduction r) { return kl_divergence(kX, kT, true, r); },
                  [](double x, double log_p) { return std::exp(log_p) * (log_p - x); }, kSome, kOther);
}

TEST(LossFormulas, Refusals) {
  const Tensor labels = input("labels", {3}, DType::int32);
  EXPECT_FALSE(cross_entropy(kX, input("labels", {4}, DType::int32), ClassLossOptions{}).ok());
  EXPECT_FALSE(cross_entropy(kX, labels, {.class_weight = ones({3})}).ok());
  EXPECT_FALSE(cross_entropy(kX, labels, {.label_smoothing = 2}).ok());
  EXPECT_FALSE(cross_entropy(kX, labels, {.weight = ones({2})}).ok());
  EXPECT_NE(l1_loss(kX, input("z", {3})).error().message.find("l1_loss: found x [3, 4] and z [3]"),
            std::string::npos);
  EXPECT_FALSE(reduce_loss(Tensor(1.0f), Reduction::batch_mean).ok());
}

}  // namespace
}  // namespace imprint::nn

// Linear bandits against plain loops in double precision, and against the closed form of ridge regression.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/base/philox.h"
#include "compute/nn/learners/linear_bandit.h"
#include "tests/reference/updates.h"

namespace imprint::nn {
namespace {
namespace bandit {  // other tests of this program have brains and samples too

using Numbers = std::vector<double>;

constexpr std::size_t kBrains = 2, kArms = 3, kFeatures = 4, kSamples = 5;
constexpr std::size_t kSquare = kFeatures * kFeatures;

double drawn(std::size_t index, std::uint32_t stream) {
  return 2 * philox_uniform(static_cast<std::uint32_t>(index), stream, 4, 5, 6) - 1;
}

// One arm of one brain.
struct Arm {
  Numbers mean = Numbers(kFeatures), covariance = Numbers(kSquare);
  Arm() {
    for (std::size_t i = 0; i < kFeatures; ++i) covariance[i * kFeatures + i] = 1;
  }
  Numbers spread(const Numbers& f) const {
    Numbers result(kFeatures);
    for (std::size_t i = 0; i < kFeatures; ++i)
      for (std::size_t j = 0; j < kFeatures; ++j) result[i] += covariance[i * kFeatures + j] * f[j];
    return result;
  }
};
double product(const Numbers& a, const Numbers& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result += a[i] * b[i];
  return result;
}

struct Plain {
  std::vector<Arm> arms = std::vector<Arm>(kArms);
  double squares = 0.01, count = 0.01;

  void drift(double share, double samples) {
    const double kept = std::pow(1 - share, samples);
    for (Arm& arm : arms)
      for (std::size_t i = 0; i < kSquare; ++i)
        arm.covariance[i] = kept * arm.covariance[i] + (i % (kFeatures + 1) == 0 ? 1 - kept : 0);
  }
  void see(const Numbers& f, std::size_t chosen, double reward) {
    Arm& arm = arms[chosen];
    const Numbers spread = arm.spread(f);
    const double v = 1 + product(f, spread), error = reward - product(f, arm.mean);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      arm.mean[i] += spread[i] * error / v;
      for (std::size_t j = 0; j < kFeatures; ++j)
        arm.covariance[i * kFeatures + j] -= spread[i] * spread[j] / v;
    }
    squares = 0.99 * squares + error * error / v;
    count = 0.99 * count + 1;
  }
};

class BanditMath : public ::testing::Test {
 protected:
  BanditMath() {
    belief.mean = input("mean", {kBrains, kFeatures, kArms});
    belief.covariance = input("covariance", {kBrains, kFeatures, kArms * kFeatures});
    belief.squares = input("squares", {kBrains});
    belief.count = input("count", {kBrains});
    samples.features = input("features", {kBrains, kSamples, kFeatures});
    samples.arms = input("arms", {kBrains, kSamples}, DType::int32);
    samples.rewards = input("rewards", {kBrains, kSamples});
    samples.there = input("there", {kBrains, kSamples}, DType::boolean);
    bindings["mean"].assign(kBrains * kFeatures * kArms, 0);
    bindings["covariance"] = reference::evaluate(first_covariance(kBrains, kFeatures, kArms), {});
    bindings["squares"].assign(kBrains, 0.01);
    bindings["count"].assign(kBrains, 0.01);
  }

  // Samples of step `step`; brain 1 has fewer.
  void arrive(std::size_t step) {
    for (const char* name : {"features", "arms", "rewards", "there"}) bindings[name].clear();
    for (std::size_t p = 0; p < kBrains; ++p)
      for (std::size_t k = 0; k < kSamples; ++k) {
        const std::size_t at = (step * kBrains + p) * kSamples + k;
        for (std::size_t i = 0; i < kFeatures; ++i)
          bindings["features"].push_back(i + 1 == kFeatures ? 1 : drawn(at * kFeatures + i, 1));
        bindings["arms"].push_back(static_cast<double>(at * 7 % kArms));
        bindings["rewards"].push_back(3 * drawn(at, 2));
        bindings["there"].push_back(p == 0 || k % 2 == 0 ? 1 : 0);
      }
  }
  Numbers features_of(std::size_t p, std::size_t k) const {
    const auto first =
        bindings.at("features").begin() + static_cast<std::ptrdiff_t>((p * kSamples + k) * kFeatures);
    return Numbers(first, first + kFeatures);
  }
  double of(const char* name, std::size_t p, std::size_t k) const {
    return bindings.at(name)[p * kSamples + k];
  }
  // The steps' results become the belief.
  void learn(double drift) {
    const auto after = learned(belief, samples, drift);
    ASSERT_TRUE(after.ok()) << after.error().message;
    const Tensor wanted[] = {after->mean, after->covariance, after->squares, after->count};
    const auto values = reference::evaluate_all(wanted, bindings);
    bindings["mean"] = values[0], bindings["covariance"] = values[1];
    bindings["squares"] = values[2], bindings["count"] = values[3];
  }

  LinearBelief belief;
  LinearSamples samples;
  reference::Bindings bindings;
};

TEST_F(BanditMath, SamplesMoveTheBeliefAsTheHeaderSays) {
  constexpr double kDrift = 0.05;
  std::vector<Plain> plain(kBrains);
  for (std::size_t step = 0; step < 4; ++step) {
    arrive(step);
    for (std::size_t p = 0; p < kBrains; ++p) {
      plain[p].drift(kDrift, p == 0 ? kSamples : (kSamples + 1) / 2);
      for (std::size_t k = 0; k < kSamples; ++k)
        if (of("there", p, k) > 0)
          plain[p].see(features_of(p, k), static_cast<std::size_t>(of("arms", p, k)), of("rewards", p, k));
    }
    ASSERT_NO_FATAL_FAILURE(learn(kDrift));
  }
  const Tensor widths = value_widths(belief, input("look", {kBrains, 1, kFeatures}));
  bindings["look"] = {0.5, -1, 2, 1, 0.5, -1, 2, 1};
  const Numbers found = reference::evaluate(widths, bindings);
  for (std::size_t p = 0; p < kBrains; ++p) {
    EXPECT_NEAR(bindings["squares"][p], plain[p].squares, 1e-5);
    EXPECT_NEAR(bindings["count"][p], plain[p].count, 1e-5);
    for (std::size_t a = 0; a < kArms; ++a) {
      const Arm& arm = plain[p].arms[a];
      const Numbers look = {0.5, -1, 2, 1};
      EXPECT_NEAR(found[p * kArms + a],
                  std::sqrt(plain[p].squares / plain[p].count * product(look, arm.spread(look))), 1e-6);
      for (std::size_t i = 0; i < kFeatures; ++i) {
        EXPECT_NEAR(bindings["mean"][(p * kFeatures + i) * kArms + a], arm.mean[i], 1e-6);
        for (std::size_t j = 0; j < kFeatures; ++j)
          EXPECT_NEAR(bindings["covariance"][(p * kFeatures + i) * kArms * kFeatures + a * kFeatures + j],
                      arm.covariance[i * kFeatures + j], 1e-6);
      }
    }
  }
}

// Without drift the mean solves (I + sum f f') m = sum f reward.
TEST_F(BanditMath, WithoutDriftTheMeanIsThatOfRidgeRegression) {
  std::vector<Numbers> gram(kArms, Numbers(kSquare)), moment(kArms, Numbers(kFeatures));
  for (std::size_t step = 0; step < 6; ++step) {
    arrive(step);
    for (std::size_t k = 0; k < kSamples; ++k) {
      const Numbers f = features_of(0, k);
      const auto arm = static_cast<std::size_t>(of("arms", 0, k));
      for (std::size_t i = 0; i < kFeatures; ++i) {
        moment[arm][i] += f[i] * of("rewards", 0, k);
        for (std::size_t j = 0; j < kFeatures; ++j) gram[arm][i * kFeatures + j] += f[i] * f[j];
      }
    }
    ASSERT_NO_FATAL_FAILURE(learn(0));
  }
  for (std::size_t a = 0; a < kArms; ++a)
    for (std::size_t i = 0; i < kFeatures; ++i) {
      double left = bindings["mean"][i * kArms + a];
      for (std::size_t j = 0; j < kFeatures; ++j)
        left += gram[a][i * kFeatures + j] * bindings["mean"][j * kArms + a];
      EXPECT_NEAR(left, moment[a][i], 1e-5) << "arm " << a;
    }
}

TEST_F(BanditMath, WithoutSamplesTheBeliefKeepsItsBits) {
  arrive(0);
  ASSERT_NO_FATAL_FAILURE(learn(0.01));
  const reference::Bindings before = bindings;
  arrive(1);
  bindings["there"].assign(kBrains * kSamples, 0);
  ASSERT_NO_FATAL_FAILURE(learn(0.01));
  for (const char* name : {"mean", "covariance", "squares", "count"})
    EXPECT_EQ(bindings[name], before.at(name)) << name;
}

// After a drift of everything nothing is known any more, and what was most likely stays.
TEST_F(BanditMath, ADriftOfEverythingWidensToTheFirstBelief) {
  arrive(0);
  ASSERT_NO_FATAL_FAILURE(learn(0));
  const Numbers mean = bindings["mean"];
  arrive(1);
  bindings["there"].assign(kBrains * kSamples, 1);
  bindings["features"].assign(kBrains * kSamples * kFeatures, 0);  // they say nothing
  ASSERT_NO_FATAL_FAILURE(learn(1));
  const Numbers first = reference::evaluate(first_covariance(kBrains, kFeatures, kArms), {});
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(bindings["covariance"][i], first[i], 1e-6);
  EXPECT_EQ(bindings["mean"], mean);
}

}  // namespace bandit
}  // namespace
}  // namespace imprint::nn

#pragma once
// Contextual bandits: Bayesian linear regression of rewards on features, for many brains of some arms each at
// once. The weights of an arm are normal. They drift, so that old samples count for less.
//
//   weights      of an arm: normal, mean m, covariance d^2 C; at first m = 0, C = I
//   drift        of all arms, for each sample: C <- (1 - drift) C + drift I
//   sample       features f, arm, reward; v = 1 + f'Cf, e = reward - f'm:
//                m <- m + Cf e / v;  C <- C - Cf (Cf)' / v
//   deviation    d^2 = squares / count of the brain, where each sample makes
//                squares <- k squares + e^2 / v, count <- k count + 1, k = 1 - 1 / kNoiseSamples
//   value        f'm; its width, a standard deviation: d sqrt(f'Cf)
//
// LinUCB takes the arm of the highest value + c width: Li, Chu, Langford, Schapire, A Contextual-Bandit
// Approach to Personalized News Article Recommendation, 2010. Thompson sampling takes the highest value +
// width times a normal number: Agrawal, Goyal, Thompson Sampling for Contextual Bandits with Linear Payoffs,
// 2013. Features may come from a network's last hidden layer: Riquelme, Tucker, Snoek, Deep Bayesian Bandits
// Showdown, 2018.
//
// P = brains, A = arms, F = features, K = samples that arrive, N = any number of rows.

#include <cstdint>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Samples that the estimate of the deviation remembers, about.
inline constexpr double kNoiseSamples = 100;
// First squares and count: of the weight of a hundredth of a sample, so that the first rewards decide.
inline constexpr float kFirstNoise = 0.01f;

struct LinearBelief {
  Tensor mean;            // float32 [P, F, A]
  Tensor covariance;      // float32 [P, F, A * F]: that of an arm a are columns a * F to (a + 1) * F
  Tensor squares, count;  // float32 [P]
};

struct LinearSamples {
  Tensor features;  // float32 [P, K, F]
  Tensor arms;      // int32 [P, K]
  Tensor rewards;   // float32 [P, K]
  Tensor there;     // bool [P, K] 1 = this row is a sample
};

// The first covariance, [P, F, A * F].
Tensor first_covariance(std::int64_t brains, std::int64_t features, std::int64_t arms);

// The belief after the samples, one after the other; the drift of all of them comes first. drift: 0 to 1.
Result<LinearBelief> learned(const LinearBelief& before, const LinearSamples& samples, double drift);

// features [P, N, F] -> the widths of all arms' values, [P, N, A].
Tensor value_widths(const LinearBelief& belief, const Tensor& features);

}  // namespace imprint::nn

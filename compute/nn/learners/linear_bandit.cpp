#include "compute/nn/learners/linear_bandit.h"

#include <algorithm>
#include <cmath>

#include "compute/tensor/composites/composites.h"
#include "compute/tensor/loop.h"

namespace imprint::nn {
namespace {

// [P] as it multiplies [P, F, A * F].
Tensor per_brain(const Tensor& numbers) { return unsqueeze(unsqueeze(numbers, 1), 2); }

Tensor drifted(const Tensor& covariance, const Tensor& there, double drift, std::int64_t arms) {
  if (drift <= 0) return covariance;
  const Tensor samples = sum(cast(there, DType::float32), {1});
  const Tensor kept = per_brain(exp(samples * static_cast<float>(std::log1p(-std::min(drift, 1 - 1e-7)))));
  return covariance * kept +
         first_covariance(covariance.extent(0), covariance.extent(1), arms) * (1.0f - kept);
}

// One sample of each brain. x: features [P, F], the arm's column [P, A] of zeros and a one, reward [P]. The
// column of a brain without a sample is all zeros.
ScanStep one_sample(std::span<const Tensor> belief, std::span<const Tensor> x) {
  const Tensor &mean = belief[0], &covariance = belief[1], &squares = belief[2], &count = belief[3];
  const Tensor &features = x[0], &arm = x[1];
  const std::int64_t brains = mean.extent(0), extent = mean.extent(1), arms = mean.extent(2);
  const Tensor there = sum(arm, {1});
  const Tensor spreads =
      reshape(matmul(unsqueeze(features, 1), covariance), {brains, arms, extent});  // C f of each arm
  const Tensor spread = sum(spreads * unsqueeze(arm, 2), {1});                      // [P, F]
  const Tensor variance = sum(features * spread, {1}) + 1.0f;
  const Tensor column = unsqueeze(arm, 1);  // [P, 1, A]
  const Tensor expected = sum(mean * unsqueeze(features, 2) * column, {1, 2});
  const Tensor error = (x[2] - expected) * there;
  const Tensor gain = spread / unsqueeze(variance, 1);
  const Tensor outer = reshape(unsqueeze(gain, 2) * unsqueeze(spread, 1), {brains, extent, 1, extent});
  constexpr float kKept = static_cast<float>(1 - 1 / kNoiseSamples);
  const auto faded = [&](const Tensor& sum_of, const Tensor& news) {
    return where(greater(there, 0.5f), sum_of * kKept + news, sum_of);
  };
  return {.carry = {mean + unsqueeze(gain * unsqueeze(error, 1), 2) * column,
                    covariance -
                        reshape(outer * reshape(arm, {brains, 1, arms, 1}), {brains, extent, arms * extent}),
                    faded(squares, square(error) / variance), faded(count, ones({brains}))},
          .results = {}};
}

}  // namespace

Tensor first_covariance(std::int64_t brains, std::int64_t features, std::int64_t arms) {
  const Shape shape{brains, features, arms * features};
  return cast(equal(remainder(iota(shape, 2), static_cast<int>(features)), iota(shape, 1)), DType::float32);
}

Result<LinearBelief> learned(const LinearBelief& before, const LinearSamples& samples, double drift) {
  const std::int64_t arms = before.mean.extent(2);
  const Tensor columns = one_hot(samples.arms, arms) * cast(unsqueeze(samples.there, 2), DType::float32);
  const Tensor carry[] = {before.mean, drifted(before.covariance, samples.there, drift, arms), before.squares,
                          before.count};
  const Tensor stacks[] = {permute(samples.features, {1, 0, 2}), permute(columns, {1, 0, 2}),
                           permute(samples.rewards, {1, 0})};
  IMPRINT_ASSIGN(const Scanned after, scan(one_sample, carry, stacks));
  return LinearBelief{after.carry[0], after.carry[1], after.carry[2], after.carry[3]};
}

Tensor value_widths(const LinearBelief& belief, const Tensor& features) {
  const std::int64_t brains = features.extent(0), rows = features.extent(1), extent = features.extent(2);
  const std::int64_t arms = belief.mean.extent(2);
  const Tensor spreads = reshape(matmul(features, belief.covariance), {brains, rows, arms, extent});
  const Tensor variance = sum(spreads * unsqueeze(features, 2), {3});
  const Tensor noise = belief.squares / belief.count;
  return sqrt(maximum(variance, 0.0f) * per_brain(noise));
}

}  // namespace imprint::nn

#pragma once
// Running mean and variance, to bring observations and rewards to one scale.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

struct Moments {
  Tensor mean, variance;  // float32 [extent]
  Tensor count;           // float32 [1]
};

// clamp((x - mean) / sqrt(variance + 1e-8), -limit, limit). x: [..., extent].
Tensor normalise(const Tensor& x, const Moments& moments, double limit = 10);

// State that a program advances. Starts with mean 0, variance 1 and almost no weight. Save it with the
// network whose inputs it normalises.
class RunningMoments {
 public:
  RunningMoments() = default;
  RunningMoments(const std::string& name, std::int64_t extent);

  Moments now() const;
  // The moments after float32 [rows, extent] as well. A column with a value that is not finite keeps its
  // moments, since it would never recover. Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm
  // for Computing Sample Variances, 1979.
  Moments with(const Tensor& rows) const;
  // Adds the updates that store the moments.
  void assign(const Moments& moments, std::vector<Update>& updates) const;

  const Parameters& state() const { return state_; }  // "mean", "variance", "count"

 private:
  Variable mean_, variance_, count_;
  Parameters state_;
};

}  // namespace imprint::nn

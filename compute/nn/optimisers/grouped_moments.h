#pragma once
// Running mean and variance of each brain of a kennel, to bring its observations and rewards to one scale.
//
// P = brains.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/parameter.h"

namespace imprint::nn {

class GroupedMoments {
 public:
  struct Values {
    Tensor mean, variance;  // float32 [P, 1, extent]
    Tensor count;           // float32 [P, 1, 1]
  };
  // New rows.
  struct Fresh {
    Tensor mean, variance;  // float32 [P, 1, extent]
    double rows = 0;
  };

  GroupedMoments() = default;
  // Mean 0, variance 1 and almost no weight.
  GroupedMoments(const std::string& name, std::int64_t groups, std::int64_t extent);

  static Fresh of(const Tensor& rows);  // float32 [P, n, extent]
  Values now() const { return {mean_.value(), variance_.value(), count_.value()}; }
  // With new rows too. Brains that are not active, bool [P], keep theirs, as do those with a number that is
  // not finite. Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
  // Variances, 1979.
  Values grown(const Fresh& fresh, const Tensor& active) const;
  void assign(const Values& values, std::vector<Update>& updates) const;

  const Parameters& state() const { return state_; }  // "mean", "variance", "count"

 private:
  Variable mean_, variance_, count_;
  Parameters state_;
};

}  // namespace imprint::nn

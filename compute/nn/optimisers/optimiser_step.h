#pragma once
// The parts that the steps of optimisers share: checks, per-network factors, frozen networks. Internal.

#include <span>
#include <string>
#include <vector>

#include "compute/nn/optimisers/optimiser.h"

namespace imprint::nn {

// A scalar, [1] or [groups] tensor as an operand beside a parameter.
Tensor beside(const Tensor& per_group, const Parameter& parameter, std::int64_t groups);
Result<> check_per_group(const char* what, const Tensor& tensor, std::int64_t groups);
Result<> check_gradients(std::span<const Tensor> gradients, const Parameters& parameters,
                         std::int64_t groups);
// The axes of a parameter without that of the networks.
Axes own_axes(const Tensor& value, std::int64_t groups);
Variable moment_for(const std::string& kind, const Parameter& parameter);

// The part of one step that all parameters share.
struct OptimiserStep {
  std::int64_t groups = 0;
  Tensor learning_rate;
  Tensor active;  // empty: all
  std::vector<Update> updates = {};

  // The new content, or the old one where frozen. Selected, not blended: NaN times 0 is NaN.
  void assign(const Variable& variable, const Tensor& value, const Tensor& alive) {
    updates.push_back(Update::assign(variable, alive.ok() ? where(alive, value, variable.value()) : value));
  }
  Tensor alive_beside(const Parameter& parameter) const {
    return active.ok() ? beside(active, parameter, groups) > 0.0f : Tensor();
  }
  // Where a variable of one number per network advances; empty: everywhere.
  Tensor counting(const Variable& counter) const;
  // The counter's next content, and that as float32, at least 1.
  Tensor next_count(const Variable& counter) const;
  static Tensor as_number(const Tensor& count) { return cast(maximum(count, 1), DType::float32); }

  Result<std::vector<Update>> finish();
};

Result<OptimiserStep> begin_optimiser_step(std::span<const Tensor> gradients, const Parameters& parameters,
                                           std::int64_t groups, const Tensor& learning_rate,
                                           const Tensor& active);

// 1 - beta^steps by expm1: subtracting the power from 1 would lose most digits in the first steps.
Tensor bias_correction(const Tensor& steps, double beta);

}  // namespace imprint::nn

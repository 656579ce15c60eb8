#pragma once
// A policy's outputs as a distribution over actions: to sample from and to differentiate.

#include <cstdint>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Discrete branches, each an independent choice, and continuous numbers. Either may be missing.
struct ActionSpace {
  std::vector<std::int64_t> branches = {};  // choices per branch
  std::int64_t continuous = 0;              // numbers

  std::int64_t choices() const;  // of all branches together: the number of logits
  std::int64_t outputs() const { return choices() + continuous; }
};

struct Actions {
  Tensor discrete;    // int32 [rows, branches]; empty without branches
  Tensor continuous;  // float32 [rows, continuous], not clipped; empty without continuous numbers
};

// Categorical per branch, normal per continuous number.
class ActionDistribution {
 public:
  // outputs: float32 [rows, space.outputs()], the logits of all branches, then the means.
  // log_deviation: float32 [continuous], shared by all rows, or [rows, continuous]; empty without continuous
  // numbers.
  // mask: bool [rows, choices], false for a forbidden choice; or empty. A forbidden choice is never drawn,
  // has probability 0 and passes no gradient. Each branch needs one choice that is allowed.
  ActionDistribution(ActionSpace space, const Tensor& outputs, const Tensor& log_deviation,
                     const Tensor& mask = Tensor());

  // Uses one stream per branch from `stream` on, then one for all continuous numbers.
  Actions sample(const Tensor& generator, std::uint32_t stream) const;
  Actions most_likely() const;
  Tensor log_probability(const Actions& actions) const;  // float32 [rows], of the whole action
  Tensor entropy() const;                                // float32 [rows]

 private:
  ActionSpace space_;
  std::vector<Tensor> logits_;
  Tensor mean_, log_deviation_;
};

}  // namespace imprint::nn

#pragma once
// What a policy's outputs mean: a distribution over actions, to draw from and to differentiate.

#include <cstdint>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::nn {

// Branches are chosen independently of each other, continuous actions are normal numbers. Either may be
// missing.
struct ActionSpace {
  std::vector<std::int64_t> branches;  // choices of each
  std::int64_t continuous = 0;

  std::int64_t choices() const;  // of all branches: so many logits
  std::int64_t outputs() const { return choices() + continuous; }
};

struct Actions {
  Tensor discrete;    // int32 [rows, branches]; empty when there are none
  Tensor continuous;  // float32 [rows, continuous], not clipped to any range; empty when there are none
};

class ActionDistribution {
 public:
  // outputs: float32 [rows, space.outputs()], the branches' logits side by side and then the means.
  // log_deviation: float32 [continuous], of every row; empty when nothing is continuous. mask: bool [rows,
  // choices], false where a choice is not open, or empty; a branch must keep one choice. A masked choice is
  // never drawn, has probability 0 and passes no gradient.
  ActionDistribution(ActionSpace space, const Tensor& outputs, const Tensor& log_deviation,
                     const Tensor& mask = Tensor());

  // Uses streams from `stream` on, one a branch and one for all that is continuous.
  Actions sample(const Tensor& generator, std::uint32_t stream) const;
  Actions most_likely() const;
  Tensor log_probability(
      const Actions& actions) const;  // float32 [rows], of all branches and numbers together
  Tensor entropy() const;             // float32 [rows]

 private:
  ActionSpace space_;
  std::vector<Tensor> logits_;
  Tensor mean_, log_deviation_;
};

}  // namespace imprint::nn

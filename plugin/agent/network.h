#pragma once
// The network of a brain, or of all brains of a kennel at once: from observations to one row of outputs for every goal.

#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/saved_brain.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

// P = brain_count, G = goal_count, V = outputs of one goal (ActionSpec), N = any number of rows.
class Network {
 public:
  // Weights [P, in, out] and biases [P, 1, out], uniform in +-1/sqrt(in) (LeCun, Bottou, Orr, Mueller, Efficient BackProp, 1998, as PyTorch's linear
  // layers begin), brain p drawn from seed + p: a kennel starts as that many single brains.
  static Result<Network> create(const BrainSpec& spec);

  // observations float32 [P, N, observations], before scaling -> [P, N, G, V].
  Tensor heads(const Tensor& observations) const;

  // heads [P, N, G, V], goals int32 [P, N] -> the outputs of each row's goal, [P, N, V].
  static Tensor of_goal(const Tensor& heads, const Tensor& goals);

  const std::vector<Variable>& parameters() const { return parameters_; }
  std::vector<StateVariable> state() const;

 private:
  BrainSpec spec_;
  std::vector<Variable> parameters_;  // weight and bias of each layer in turn
};

}  // namespace imprint::agent

#pragma once
// How much better than expected it went.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

struct AdvantageOptions {
  double discount = 0.99;  // of the next step's value
  double decay = 0.95;     // of what later steps add to the estimate: lambda
};

// What happened, time-major: float32 [steps, agents].
struct Trajectories {
  Tensor reward;
  Tensor value;       // of the state that was acted in
  Tensor next_value;  // of the state that followed: 0 where the episode terminated, its last state's where it
                      // was truncated
  Tensor continues;   // 1 where the next step belongs to the same episode, else 0
};

struct Advantages {
  Tensor advantage;     // float32 [steps, agents]
  Tensor value_target;  // advantage + value
};

// Schulman, Moritz, Levine, Jordan, Abbeel, High-Dimensional Continuous Control Using Generalized Advantage
// Estimation, 2016, equation 16: delta = reward + discount next_value - value; advantage[t] = delta[t] +
// discount decay continues[t] advantage[t + 1]. A step that ends an episode has a next value of its own, so a
// time limit is not mistaken for a failure.
Advantages generalised_advantages(const Trajectories& trajectories, const AdvantageOptions& options = {});

// (x - mean) / (deviation + 1e-8) over the last axis, the deviation with n - 1 in its denominator; a single
// element is left as it is.
Tensor standardised(const Tensor& x);

}  // namespace imprint::nn

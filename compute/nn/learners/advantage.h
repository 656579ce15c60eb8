#pragma once
// Advantages: how much better an action turned out than the value function expected.

#include "compute/tensor/tensor.h"

namespace imprint::nn {

struct AdvantageOptions {
  double discount = 0.99;  // gamma, of the next step's value
  double decay = 0.95;     // lambda, of later steps' share in the estimate
};

// A rollout, time-major: float32 [steps, agents].
struct Trajectories {
  Tensor reward;
  Tensor value;       // of the state in which the agent acted
  Tensor next_value;  // of the state that followed: 0 where the episode terminated; where it was truncated,
                      // the value of its last state
  Tensor continues;   // 1 where the next step belongs to the same episode, else 0
};

struct Advantages {
  Tensor advantage;     // float32 [steps, agents]
  Tensor value_target;  // advantage + value
};

// delta = reward + discount next_value - value
// advantage[t] = delta[t] + discount decay continues[t] advantage[t + 1]
// The last step of an episode has its own next_value: a time limit does not count as a failure.
// Schulman, Moritz, Levine, Jordan, Abbeel, High-Dimensional Continuous Control Using Generalized Advantage
// Estimation, 2016, equation 16.
Advantages generalised_advantages(const Trajectories& trajectories, const AdvantageOptions& options = {});

struct VtraceOptions {
  double discount = 0.99, decay = 1;
  double most_ratio = 1, most_trace = 1;  // bounds of the ratios in errors and in traces: rho, c
};

// The same for trajectories that another policy made: actors with older weights.
//   ratio = exp(log_ratio), log_ratio = log(policy / policy that acted) [steps, agents]
//   rho = min(most_ratio, ratio), c = decay min(most_trace, ratio)
//   delta = rho (reward + discount next_value - value)
//   v[t] - value[t] = delta[t] + discount continues[t] c[t] (v[t + 1] - value[t + 1])
//   advantage[t] = rho (reward + discount (next_value + continues[t] (v[t + 1] - value[t + 1])) - value)
// value_target is v. Where a step continues, next_value is the value of the step after it.
// Espeholt et al., IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner Architectures,
// 2018, equation 1, section 4.2 and remark 2.
Advantages vtrace_advantages(const Trajectories& trajectories, const Tensor& log_ratio,
                             const VtraceOptions& options = {});

// Per row the discounted sum of the rewards of its trajectory so far. Rows are in the order of time.
// reward, follows: float32 [P, steps]; follows: 1 where the next row continues the trajectory.
Tensor discounted_returns(const Tensor& reward, const Tensor& follows, double discount);

// (x - mean) / (deviation + 1e-8) over the last axis; the deviation divides by n - 1. An axis of one element
// is returned unchanged.
Tensor standardised(const Tensor& x);

}  // namespace imprint::nn

#pragma once
// Soft actor-critic, for many brains of one shape at once: continuous actions from remembered steps, with two
// critics and a temperature that keeps the policy's entropy at a target.
//
//   action      a = tanh(mean + exp(log deviation) noise)
//   target      y = reward + discount continues (min Q-(s', a') - temperature log pi(a' | s')), a' drawn
//   critics     mean of (Q1 - y)^2 + (Q2 - y)^2
//   policy      mean of temperature log pi(a | s) - min Q(s, a), a drawn
//   temperature -log temperature mean of (log pi + target entropy)
//
// The target critics follow the critics by target_rate in every step.
// Haarnoja, Zhou, Hartikainen, Tucker, Ha, Tan, Kumar, Zhu, Gupta, Abbeel, Levine, Soft Actor-Critic
// Algorithms and Applications, 2018.

#include <cstdint>
#include <functional>
#include <vector>

#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/parameter.h"

namespace imprint::nn {

// P = brains, B = minibatch, A = numbers of an action.
struct SacOptions {
  std::int64_t brains = 1, minibatch = 256, actions = 1;
  double learning_rate = 3e-4, discount = 0.99, target_rate = 0.005;
  double max_gradient_norm = 1e30;  // of the policy, and of both critics together
  double entropy_per_action = -1;   // target entropy: this times A
  double initial_temperature = 1;
};

struct SacNetworks {
  // observation [P, n, D], goal int32 [P, n] -> [P, n, 2 A]: the means, then the logs of the deviations.
  std::function<Tensor(const Tensor& observation, const Tensor& goal)> policy;
  // -> [P, n].
  using Critic = std::function<Tensor(const Tensor& observation, const Tensor& action, const Tensor& goal)>;
  Critic critic[2], target[2];
  Parameters policy_parameters, critic_parameters, target_parameters;  // of both critics, in one order
};

struct SacRows {
  Tensor observation, next_observation;  // float32 [P, B, D]
  Tensor goal, next_goal;                // int32 [P, B]
  Tensor action;                         // float32 [P, B, A], -1 to 1
  Tensor reward;                         // float32 [P, B]
  Tensor continues;                      // float32 [P, B]: 0 = the episode terminated
};

// A draw from the policy, and the log of its density, [P, n, A] and [P, n]. noise: standard normal [P, n, A].
struct SquashedDraw {
  Tensor action, log_density;
};
SquashedDraw squashed(const Tensor& policy_outputs, const Tensor& noise);

// Terms that a step learns beside the minibatch.
struct SacBeside {
  Tensor there;        // bool [P] 1 = this brain has a minibatch; empty: all that are active
  Tensor policy_loss;  // float32 [P], added to the policy's; or empty
};

class Sac {
 public:
  Sac(SacOptions options, SacNetworks networks);

  struct Step {
    std::vector<Update> updates;
    Tensor loss;  // float32 [P], of the critics; not finite where a loss or gradient was not
    Tensor policy_loss, entropy, gradient_norm;  // float32 [P]
  };
  // One optimiser step. active: bool [P]; brains that are not, or whose loss is not finite, keep their state.
  // Uses the streams from `stream` on of the generator.
  Result<Step> step(const SacRows& batch, const Tensor& active, const Tensor& generator, std::uint32_t stream,
                    const SacBeside& beside = {}) const;

  const Parameters& state() const { return state_; }  // "adam....", "log_temperature"

 private:
  struct Losses {
    Tensor critic, policy, temperature, entropy;  // float32 [P]
  };
  Losses losses(const SacRows& batch, const Tensor& generator, std::uint32_t stream) const;

  SacOptions options_;
  SacNetworks networks_;
  Variable log_temperature_;  // [P, 1]
  Adam adam_;
  Parameters state_;
};

}  // namespace imprint::nn

#pragma once
// Proximal policy optimisation from rollouts that the host has gathered: agents that act at times of their
// own, in many brains of one shape at once. (nn::Ppo is for agents that all step at once and keep their
// rollout on the device.) One update, as programs that run one after the other:
//
//   prepare     moments, scaled rewards, generalised advantages, the order of the minibatches
//   minibatch   epochs * steps / minibatch times: clipped loss, clip of the gradient, Adam
//   publish     the actor's new weights
//
// Policy and critic share nothing. An update changes a learned copy of both; its last part gives the acting
// networks the new weights. With normalise_observations the copy learns on normalised observations, and its
// first layers are folded back at the end: the acting networks take observations as they are, so that their
// weights alone are enough. Folding keeps what the networks compute. Only the very first update takes the
// initial weights as they are: they suit normalised observations.
//
// A brain without samples, or with a gradient that is not finite, keeps its weights.
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017.

#include <cstdint>
#include <functional>
#include <vector>

#include "compute/nn/action_distribution.h"
#include "compute/nn/optimiser.h"
#include "compute/nn/parameter.h"
#include "compute/program/program_sequence.h"

namespace imprint::nn {

// P = brains, R = steps, B = minibatch, D = observations.
struct RolloutPpoOptions {
  std::int64_t brains = 1, steps = 128, minibatch = 64, epochs = 4;
  std::int64_t observations = 1;
  ActionSpace action = {};
  double learning_rate = 3e-4, discount = 0.99, advantage_decay = 0.95, clip_range = 0.2;
  double entropy_coefficient = 0, value_coefficient = 0.5, max_gradient_norm = 0.5, adam_epsilon = 1e-5;
  double max_divergence = 0;  // a brain's update stops once a minibatch exceeds it; 0: no limit
  bool clip_values = false;   // values move by at most clip_range
  bool normalise_observations = false;
  bool normalise_rewards = false;  // divided by the deviation of the discounted return
  std::uint64_t seed = 0;
};

// observation [P, n, D], goal int32 [P, n] -> [P, n, outputs]. The first two parameters are the first layer's
// weight [P, D, width] and bias [P, 1, width].
struct RolloutNetwork {
  std::function<Tensor(const Tensor& observation, const Tensor& goal)> outputs;
  Parameters parameters;
  Variable log_deviation = {};  // [P, 1, continuous] of the policy, if it draws continuous numbers
};

struct PolicyAndCritic {
  RolloutNetwork policy, critic;

  Parameters parameters() const;  // "actor....", "actor.log_deviation", "critic...."
};

// n samples of each brain. A whole rollout is sorted by trajectory.
struct RolloutRows {
  Tensor observation, next_observation;  // float32 [P, n, D]
  Tensor goal, next_goal;                // int32 [P, n]
  Tensor discrete;                       // int32 [P * n, branches]; empty without branches
  Tensor continuous;                     // float32 [P * n, continuous] as drawn; empty without them
  Tensor mask;                           // bool [P * n, choices]: allowed; empty without branches
  Tensor log_probability;                // float32 [P, n] of the action, by the weights that chose it
  Tensor reward;                         // float32 [P, n]
  Tensor begins;                         // float32 [P, n]: 1 = no row of the same trajectory lies before
  Tensor continues;                      // float32 [P, n]: 0 = the episode terminated
};

// The columns of samples float32 [P * n, width], one per row, sorted by brain.
using RolloutView = std::function<RolloutRows(const Tensor& samples)>;

class RolloutPpo {
 public:
  // acting: chooses actions and values them. learned: the copy that an update changes, with the weights of
  // `acting` at its start.
  RolloutPpo(RolloutPpoOptions options, PolicyAndCritic acting, PolicyAndCritic learned);

  // samples: float32 [P * R, width], the rollout. filled: int32 [P], 0 = this brain has none.
  // Output of the last part: float32 [P], mean squared error of the critic over the minibatches; not finite
  // where a gradient was not.
  Result<ProgramSequence> update(const Tensor& samples, const Tensor& filled, const RolloutView& view) const;
  std::uint32_t minibatches() const;

  // "adam....", "generator" and, where they are used, "moments....", "returns....", "fresh". For saving, with
  // the acting networks' parameters. An update changes it from its first part on.
  const Parameters& state() const { return state_; }
  // Holds nothing between updates.
  const std::vector<Variable>& work() const { return work_; }

  // float32 [P]: 1 until the first update. Weights that come from elsewhere set it to 0, so that folding
  // keeps what they compute.
  static constexpr const char* kFresh = "fresh";

 private:
  // Running mean and variance of each brain: [P, 1, extent], count [P, 1, 1].
  struct Moments {
    Variable mean, variance, count;
  };
  struct MomentValues {
    Tensor mean, variance, count;
  };
  Moments moments(const std::string& name, std::int64_t extent);
  // With rows [P, n, extent] too. Brains that are not active keep theirs.
  static MomentValues grown(const Moments& moments, const Tensor& rows, const Tensor& active);
  static void assign(const Moments& moments, const MomentValues& values, std::vector<Update>& updates);

  Variable work(const std::string& name, const Shape& shape, DType dtype = DType::float32);
  Tensor deviation() const;  // [P, 1, D] of the observations, as the networks use it
  ActionDistribution policy(const RolloutNetwork& network, const Tensor& observation, const Tensor& goal,
                            const Tensor& mask) const;
  static Tensor values(const RolloutNetwork& network, const Tensor& observation, const Tensor& goal);

  ProgramDescription prepare(const RolloutRows& rollout, const Tensor& active) const;
  Result<ProgramDescription> minibatch_step(const Tensor& samples, const Tensor& has_rollout,
                                            const RolloutView& view) const;
  ProgramDescription publish(const Tensor& active) const;
  Tensor scaled_rewards(const RolloutRows& rollout, const Tensor& active, std::vector<Update>& updates) const;
  Tensor standard(const Tensor& advantage) const;  // [P, B]
  void unfold(const RolloutNetwork& network, const MomentValues& moments, const Tensor& active,
              std::vector<Update>& updates) const;
  void fold(const RolloutNetwork& from, const RolloutNetwork& to, const Tensor& active,
            std::vector<Update>& updates) const;

  RolloutPpoOptions options_;
  PolicyAndCritic acting_, learned_;
  Adam adam_;
  Variable generator_, fresh_;
  Moments observation_moments_, return_moments_;
  Variable advantage_, value_target_, value_;  // float32 [P * R]
  Variable order_;   // int32 [P, epochs * R]: the row at each place of each minibatch
  Variable turn_;    // int32 [1]: number of the minibatch
  Variable sums_;    // float32 [P]: sum of the losses
  Variable halted_;  // float32 [P]: 1 once max_divergence was exceeded
  Parameters state_;
  std::vector<Variable> work_;
};

}  // namespace imprint::nn

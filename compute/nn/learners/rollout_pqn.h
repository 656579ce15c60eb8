#pragma once
// The update of parallelised Q-learning: a crowd's newest steps instead of a replay memory, lambda returns
// instead of a target network. Programs that run one after the other:
//
//   prepare     scaled rewards, lambda returns, the order of the minibatches
//   minibatch   epochs * steps / minibatch times: squared error, clip of the gradient, RAdam
//   publish     the acting network's new weights
//
// R[t] = r[t] + discount * ((1 - lambda) * max Q(s[t + 1], .) + lambda * R[t + 1]), where the last row of a
// trajectory has lambda 0 and a terminated episode no future. The network should normalise its hidden layers:
// without a target network that keeps estimates from growing.
//
// An update changes a learned copy. With normalise_rewards the copy learns returns divided by the running
// deviation of the discounted return. Its last layer is divided by that at the start, multiplied by it at the
// end: values stay in the game's units. van Hasselt, Guez, Hessel, Mnih, Silver, Learning Values across Many
// Orders of Magnitude, 2016.
//
// A brain without samples, or with a gradient that is not finite, keeps its weights.
// Gallici, Fellows, Ellis, Pou, Masmitja, Foerster, Martin, Simplifying Deep Temporal Difference Learning,
// 2024.

#include "compute/nn/learners/rollout_ppo.h"

namespace imprint::nn {

// Means over the minibatches of an update. Values and errors are in the game's units, the loss is not.
enum class PqnMetric : std::uint8_t { loss, error, lowest_value, highest_value, gradient_norm };
inline constexpr std::int64_t kPqnMetrics = 5;

// P = brains, R = steps, B = minibatch.
struct RolloutPqnOptions {
  std::int64_t groups = 1;   // brains, >= 1
  std::int64_t steps = 128;  // rows of a rollout and brain, one trajectory after the other
  std::int64_t minibatch = 64, epochs = 4;
  double learning_rate = 2.5e-4, discount = 0.99, trace_decay = 0.65, max_gradient_norm = 10;
  // Large: where values fit, gradients are small, and steps of full size would undo a policy whose choices
  // differ by little.
  double radam_epsilon = 1e-3;
  // Updates after which the learning rate has fallen linearly to 0; 0: it stays.
  std::int64_t rate_updates = 0;
  // Updates after which it is half, after twice as many a third, at last kLeastRate of it; 0: it stays.
  double half_life_updates = 0;
  bool normalise_rewards = false;
  std::uint64_t seed = 0;
};

class RolloutPqn {
 public:
  static constexpr double kLeastRate = 1.0 / 32;

  // outputs: a value per choice. The last two parameters are the last layer's weight [P, F, columns] and bias
  // [P, 1, columns]. learned: the copy that an update changes, with the weights of `acting` at its start.
  RolloutPqn(RolloutPqnOptions options, RolloutNetwork acting, RolloutNetwork learned);

  // Rows need observation, goal, discrete (one branch), reward, follows, continues, next_observation and
  // next_goal; mask: what the next state allows. filled: int32 [P], 0 = this brain has no rollout.
  // Output of the last part: float32 [P, kPqnMetrics].
  Result<ProgramSequence> update(const RolloutSource& source, const Tensor& filled) const;
  std::uint32_t minibatches() const;

  // "radam....", "generator", "updates" and with normalise_rewards "returns....". For saving, with the acting
  // network's parameters. An update changes it from its first part on.
  const Parameters& state() const { return state_; }
  // Holds nothing between updates.
  const Parameters& work() const { return work_; }

 private:
  Variable work(const std::string& name, const Shape& shape, DType dtype = DType::float32);
  Tensor lambda_returns(const RolloutRows& rollout) const;  // [P, R]
  Tensor rate() const;                                      // a number, or [P]
  Tensor in_rollouts(const Tensor& rows) const;             // [P, n] rows of each brain -> [P * n] of all
  bool is_last_layer(std::size_t parameter) const { return parameter + 2 >= learned_.parameters.size(); }

  ProgramDescription prepare(const RolloutRows& rollout, const Tensor& active) const;
  Result<ProgramDescription> minibatch(const RolloutSource& source, const Tensor& active) const;
  ProgramDescription publish(const Tensor& active) const;

  RolloutPqnOptions options_;
  RolloutNetwork acting_, learned_;
  RAdam radam_;
  Variable generator_;
  GroupedMoments return_moments_;
  Variable updates_;  // float32 [P]: so far, also where the rate stays: files fit then
  Variable target_;   // float32 [P * R]: lambda returns, scaled
  Variable order_;    // int32 [P, epochs * R]: the row at each place of each minibatch
  Variable turn_;     // int32 [1]: number of the minibatch
  Variable scale_;    // float32 [P, 1, 1]: of the returns in this update
  Variable taken_;    // float32 [P]: minibatches that changed the weights
  Variable sums_;     // float32 [P, kPqnMetrics]
  Parameters state_, work_;
};

}  // namespace imprint::nn

#pragma once
// What a minibatch from the replay memory teaches: one of these for each learner that draws from one
// (LearnerTraits::replays).
//
// P = brain_count, B = batch_size, G = goal_count, V = outputs of one goal.

#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/learn/replay.h"
#include "plugin/agent/network.h"

namespace imprint::agent {

// The columns of drawn samples [P, B, W].
struct Minibatch {
  Tensor rows;
  SampleLayout layout;

  Tensor columns(std::uint32_t first, std::uint32_t count) const { return narrow(rows, 2, first, count); }
  Tensor column(std::uint32_t index) const { return squeeze(columns(index, 1), 2); }
  Tensor whole_number(std::uint32_t index) const { return cast(column(index), DType::int32); }
};

// What a step of the optimiser makes of the network: one new value a parameter, in order, and the number of
// steps that each brain has made by then, int32 [P]; brains that do not learn in this step keep both. active:
// bool [P].
struct Stepped {
  std::vector<Tensor> parameters;
  Tensor count;
  Tensor active;
};

class Objective {
 public:
  virtual ~Objective() = default;

  // float32 [P, B]: of each sample.
  virtual Tensor losses(const Minibatch& batch, const Network& network) const = 0;
  // What it keeps beside the network and the optimiser, for files and snapshots, and how a step changes that.
  virtual std::vector<StateVariable> state() const { return {}; }
  virtual std::vector<Update> follow(const Stepped&) const { return {}; }
};

// The objective of spec.learner. Errors: those of Network::create.
Result<std::unique_ptr<Objective>> make_objective(const BrainSpec& spec);

// Feedback: H(s, g, a) is the expected feedback. For a sample (s, g, a, h, w) with m = 1 when h > 0, else 0,
//   loss = w * ((H(s,g,a) - h)^2 + m * margin_weight * sum over a' != a of max(0, H(s,g,a') + margin)^2)
// after W. Bradley Knox and Peter Stone, Interactively Shaping Agents via Human Reinforcement: The TAMER
// Framework, 2009, with a margin as in Todd Hester et al., Deep Q-learning from Demonstrations, 2018: what
// was not praised is pushed below -margin.
std::unique_ptr<Objective> make_feedback_objective(const BrainSpec& spec);

// Cloning: for a sample (s, g, choices, continuous, w), w * (sum over branches of cross-entropy + sum over
// continuous actions of squared error).
std::unique_ptr<Objective> make_cloning_objective(const BrainSpec& spec);

// DQN: Q(s, g, a) is the expected discounted return. For a sample (s, g, a, r, s', g', open') with c = 0 when
// a terminated its episode, else 1,
//   loss = huber(Q(s,g,a) - y),  y = r + c * discount * Q-(s', g', a'),
// where a' is the best open choice by Q-, or by Q with double_estimate. Q- is the target network: every
// target_period-th step of a brain it goes target_rate of the way to Q. Mnih et al., Human-level Control
// through Deep Reinforcement Learning, 2015; van Hasselt, Guez, Silver, Deep Reinforcement Learning with
// Double Q-learning, 2016.
Result<std::unique_ptr<Objective>> make_dqn_objective(const BrainSpec& spec);

}  // namespace imprint::agent

#pragma once
// The programs that learn: take in new samples, draw a minibatch a brain, forward, loss, backward, clip, Adam; one run a minibatch.
//
// P = brain_count, B = batch_size, C = replay_capacity, K = rows_per_step, W = sample width (replay.h).

#include <vector>

#include "compute/program/program.h"
#include "plugin/agent/network.h"
#include "plugin/agent/replay.h"

namespace imprint::agent {

struct LearnGraph {
  // Inputs.
  static constexpr std::size_t kFilled = 0;  // int32 [P]: samples to draw from; 0 = this brain does not learn now
  static constexpr std::size_t kRows = 1;    // int32 [P * K]: where the new samples go, a row of the replay variable each; -1 = nowhere
  static constexpr std::size_t kValues = 2;  // float32 [P * K, W]: the new samples
  static constexpr std::size_t kSights = 3;  // int32 [P * K]: row of the ring of sights that has the observation; -1 = it is in the sample
  // Outputs.
  static constexpr std::size_t kLoss = 0;    // float32 [P]

  bool has_sights = false;                   // else there is no input kSights
  ProgramDescription description;
  std::vector<StateVariable> state;          // beside the network's parameters: moments, step counters, replay memory, generator
};

// The tensors of a learn program's inputs, in their order; `sights` is not ok() where there is no ring.
struct LearnInputs {
  Tensor filled, rows, samples, sights;
};

// The draw sees the memory as it was before the run: what is taken in now is learned from the next run on.
//
// Feedback: H(s, g, a) is the expected feedback. For a sample (s, g, a, h, w) with m = 1 when h > 0, else 0,
//   loss = w * ((H(s,g,a) - h)^2 + m * margin_weight * sum over a' != a of max(0, H(s,g,a') + margin)^2)
// after W. Bradley Knox and Peter Stone, Interactively Shaping Agents via Human Reinforcement: The TAMER Framework, 2009, with a margin as in Todd
// Hester et al., Deep Q-learning from Demonstrations, 2018: what was not praised is pushed below -margin.
//
// Cloning: for a sample (s, g, choices, continuous, w), w * (sum over branches of cross-entropy + sum over continuous actions of squared error).
//
// Both: mean over the minibatch, then each brain by itself: gradient cut to max_gradient_norm, Adam (Kingma and Ba, 2015) with beta 0.9 and 0.999.
// A brain whose loss or gradient is not finite, or that has no samples, keeps weights and moments as they are.
// sights: the ring (sight.h), or a variable that is not ok().
Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network, const Variable& sights = {});
// The same on samples that lie on the device, for whoever has them there: the description has no inputs and computes from what is given, of their shapes.
Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network, const LearnInputs& given, const Variable& sights = {});

}  // namespace imprint::agent

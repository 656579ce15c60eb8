#pragma once
// Terms of a learner's graph beside the game's rewards: demonstrations, and signals of its own
// (compute/nn/learners/reward_signals.h).
//
// P = brain_count, n = any number of rows.

#include <memory>

#include "compute/nn/learners/reward_signals.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/learn/minibatch.h"
#include "plugin/agent/spec/network.h"

namespace imprint::agent {

nn::ActionSpace action_space(const BrainSpec& spec);

// Draws of what was shown, and how much they count: demonstration_strength at first, half of it after
// demonstration_half_life minibatches.
class DemonstrationDraws {
 public:
  DemonstrationDraws(const BrainSpec& spec, const LearnInputs& inputs);

  Tensor there() const;  // bool [P]: the brain learns from some in this step
  Minibatch draw(const Tensor& generator, std::int64_t n, std::uint32_t stream) const;
  // Weighted mean of [P, n], times the strength; 0 where none is there. [P].
  Tensor loss(const Minibatch& batch, const Tensor& losses) const;
  std::vector<Update> count(const Tensor& learns) const;  // a minibatch. learns: bool [P]
  const Variable& age() const { return age_; }            // "demonstration_age", state

 private:
  BrainSpec spec_;
  Tensor rows_, filled_;
  Variable age_;
};

// Null: the brain has none.
std::shared_ptr<const nn::RewardSignals> make_signals(const BrainSpec& spec);
nn::SignalRows signal_rows(const BrainSpec& spec, const Minibatch& batch);
nn::SignalRows demonstration_signal_rows(const BrainSpec& spec, const Minibatch& shown);

}  // namespace imprint::agent

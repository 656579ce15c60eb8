#pragma once
// The common part of the learners of rollouts: their settings, the rows of a rollout, and the frame of an
// update.
//
// One run is a whole update, on a copy of the network that is published at the end. Until then agents act
// with the weights that collected the rollout, and everything but the last part may run early and in slices.

#include "compute/nn/learners/rollout_ppo.h"
#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// rollout_steps, batch_size, epochs, rate_decisions, discount. Errors: invalid_argument.
Result<> check_rollout_settings(const BrainSpec& spec);

// Fills in settings that are 0, from the number of agents and how often they decide, which are in their
// ranges (validate.h):
//   rollout_steps        kRolloutPerAgent of each agent, kLeastRollout to kMostRollout in all
//   batch_size           an eighth of the rollout or the next larger divisor, at least kLeastBatch
//                        With a cell: whole sequences
//   learn_period_frames  one minibatch per frame, but at most a quarter of the frames that a rollout takes
void complete_rollouts(BrainSpec& spec);

// The columns of samples [P * n, W] that the layout has. Rows are sorted by trajectory.
nn::RolloutRows rollout_rows(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                             const Tensor& samples);
nn::RolloutSource rollout_source(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                                 const Tensor& samples);

// It takes scaled observations.
nn::RolloutNetwork rollout_network(const Network& network);

// Updates after rate_decisions.
std::int64_t rate_updates(const BrainSpec& spec);

// Completes a graph whose sequence is the update. state, work: those of the update. acting -> learned: the
// copy at its start.
Result<> finish_update(const nn::Parameters& state, const nn::Parameters& work, const nn::Parameters& learned,
                       const nn::Parameters& acting, LearnGraph& graph);

}  // namespace imprint::agent

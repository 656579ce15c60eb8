#pragma once
// The PQN learner: rewards and feedback, in rollouts of many agents; one branch.
//
// Q-learning without a replay memory and without a target network (compute/nn/learners/rollout_pqn.h). Both
// are replaced: the memory by many agents, whose newest steps are as varied, the target network by a layer
// normalisation before the activation of each hidden layer, which keeps estimates from growing. It has
// neither gain nor bias: the weights of all learners have one form. Targets are lambda returns by the weights
// from before the update; they look through random choices too (Peng's Q(lambda)). Agents explore as those of
// the DQN learner do, epsilon-greedily. Steps of two versions of the weights may be in one rollout: it learns
// values, for which it does not matter who chose.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | reward | begins | allowed | continues | next observation | next goal.
const Learner& pqn_learner();

}  // namespace imprint::agent

#pragma once
// The SAC learner: rewards and feedback, remembered; continuous actions only.
//
// compute/nn/learners/sac.h has the formulas. The brain's network is the policy: means and logs of
// deviations. Agents that explore draw from it; others take tanh of the mean. Two critics and their targets
// take the observation and the action; each has the policy's hidden layers and one output per goal. Loss: the
// critics' squared error. Haarnoja et al., Soft Actor-Critic Algorithms and Applications, 2018.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | continuous actions | reward | continues | next observation | next goal.
const Learner& sac_learner();

}  // namespace imprint::agent

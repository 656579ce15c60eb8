#pragma once
// The DQN learner: rewards and feedback; one branch.
//
// Q(s, g, a) is the expected discounted return. For a sample (s, g, a, r, s', g', allowed'), with c = 0 when
// a terminated its episode, else 1:
//   loss = huber(Q(s,g,a) - y),  y = r + c * discount * Q-(s', g', a')
// a' is the best allowed choice by Q-, or by Q with double_estimate. Q- is the target network: every
// target_period-th optimiser step of a brain moves it target_rate of the way to Q. Mnih et al., Human-level
// Control through Deep Reinforcement Learning, 2015; van Hasselt, Guez, Silver, Deep Reinforcement Learning
// with Double Q-learning, 2016.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | reward | continues | next observation | next goal | allowed next.
const Learner& dqn_learner();

}  // namespace imprint::agent

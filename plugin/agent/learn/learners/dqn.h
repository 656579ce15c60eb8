#pragma once
// The DQN learner: rewards and feedback; one branch.
//
// Q(s, g, a) is the expected discounted return. For a sample (s, g, a, r, s', g', allowed'), with c = 0 when
// a terminated its episode, else 1:
//   loss = huber(Q(s,g,a) - y), or half its square,  y = r + c * discount * Q-(s', g', a')
// y is at most the largest reward seen divided by 1 - discount, and at least the smallest: no return is
// beyond that. With n_step, r is the discounted sum of that many rewards and s' follows the last of them
// (Sutton, Learning to Predict by the Methods of Temporal Differences, 1988). With dueling, Q = V + A - mean
// A, with a network each; agents act by A, which orders the choices alike (Wang et al., Dueling Network
// Architectures for Deep Reinforcement Learning, 2016).
// a' is the best allowed choice by Q-, or by Q with double_estimate. Q- is the target network: every
// target_period-th optimiser step of a brain moves it target_rate of the way to Q. Mnih et al., Human-level
// Control through Deep Reinforcement Learning, 2015; van Hasselt, Guez, Silver, Deep Reinforcement Learning
// with Double Q-learning, 2016.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | reward | continues | next observation | next goal | allowed next.
const Learner& dqn_learner();

}  // namespace imprint::agent

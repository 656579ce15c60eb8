#pragma once
// The ES learner: evolution strategies, without gradients and without a memory of steps. Branches and
// continuous actions.
//
// A kennel is one population, with one body each. Its first brain is the mean of all others' weights; they
// stand in pairs at its sides, 2 k + 1 at mean + sigma e, 2 k + 2 at mean - sigma e, where e is standard
// normal and sigma is BrainSpec::exploration. Each plays one episode or more without any other exploration.
// When all have done so the mean moves, and all others are drawn again:
//
//   fitness  f   mean return of the episodes that a brain has begun and ended with these weights
//   rank     u   of f among all brains, -1/2 (the lowest) to 1/2; equal ones share
//   ascent   g = 1 / (n sigma^2) sum of u (weights - mean), by Adam
//
// An episode that takes longer than rollout_steps counts with the return so far. So does a game without
// episodes, whose first rollout_steps steps with new weights do not count. Brains without a body are left
// out. Salimans, Ho, Chen, Sidor, Sutskever, Evolution Strategies as a Scalable Alternative to Reinforcement
// Learning, 2017; antithetic pairs and ranks are from there.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | reward | begins.
const Learner& es_learner();

}  // namespace imprint::agent

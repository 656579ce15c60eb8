#pragma once
// The PPO learner: rewards and feedback, in rollouts; any branches.
//
// The host gathers steps, because agents of a game decide at times of their own, and hands over a whole
// rollout as one input. (nn::Ppo is for agents that all step at once and keep their rollout on the device.)
// One run is a whole update: generalised advantages and the actions' log-probabilities; then `epochs` passes
// over the rollout, each in another order, in minibatches of batch_size with clipped loss, clip and Adam.
// Actor and critic share nothing. The critic has the actor's hidden layers and one output per goal.
// The update works on a copy of the actor and publishes it at the end. Until then agents act with the weights
// that collected the rollout, and everything but the last part may run early and in slices.
// Loss: the critic's mean squared error, mean over the minibatches; not finite where a gradient was not.
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017; Schulman,
// Moritz, Levine, Jordan, Abbeel, High-Dimensional Continuous Control Using Generalized Advantage Estimation,
// 2016.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice per branch | reward | begins | allowed | continues | next observation |
// next goal.
const Learner& ppo_learner();

}  // namespace imprint::agent

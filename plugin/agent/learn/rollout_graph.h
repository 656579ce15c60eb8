#pragma once
// Learning from rollouts: proximal policy optimisation of a kennel, put together from compute/nn's parts.
// nn::Ppo is for agents that all step at once and remember on the device; agents of a game decide when they
// like, so here the host gathers their steps, and hands a whole rollout over as an input.
//
// A run is a whole update: advantages by generalised estimation, the log-probabilities that the actions had,
// then `epochs` times the rollout in another order each, in minibatches of batch_size, each with clipped
// loss, norm cut and Adam. Actor and critic share nothing; the critic has the actor's hidden layers and one
// output a goal. The update is made on a copy of the actor, which the actor becomes at the end: until then
// agents act by the weights that the rollout was done with, and all but that last step may run early and in
// slices. Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017;
// Schulman, Moritz, Levine, Jordan, Abbeel, High-Dimensional Continuous Control Using Generalized Advantage
// Estimation, 2016.

#include "compute/base/result.h"
#include "plugin/agent/learn/learn_graph.h"

namespace imprint::agent {

// Fills in the sequence, state and work of a graph. filled: int32 [P], rollout_steps or 0; samples: [P *
// rollout_steps, W] as take_rollouts leaves them, an input like filled. The loss is the critic's mean squared
// error, mean over the minibatches; not finite where a gradient was not.
Status describe_rollout_learning(const BrainSpec& spec, const Network& network, const Tensor& filled,
                                 const Tensor& samples, double max_norm, LearnGraph& graph);

}  // namespace imprint::agent

#pragma once
// The PPO learner: rewards and feedback, in rollouts; any branches and continuous actions.
//
// Branches are drawn from the softmax of their outputs; continuous actions from a normal distribution around
// theirs, whose deviation is learned, and clamped to [-1, 1] after that. Samples hold them as drawn.
//
// The host gathers steps, because agents of a game decide at times of their own, and hands over a whole
// rollout as one input. One run is a whole update (compute/nn/learners/rollout_ppo.h). Each sample holds its
// action's log-probability, so a rollout may hold steps of two versions: those of the weights before the
// newest, which agents took during the update, are not lost. Actor and critic share nothing. The critic has
// the actor's hidden layers and one output per goal. With a cell or streams they share all but the last
// layer. With a cell a minibatch is whole sequences of sequence_steps rows, and gradients go back to the
// start of each. The state there is the one that the agent decided from; its sample holds it (Kapturowski et
// al., Recurrent Experience Replay in Distributed Reinforcement Learning, 2019). The update works on a copy
// of the actor and publishes it at the end. Until then agents act with the weights that collected the
// rollout, and everything but the last part may run early and in slices. Loss: the critic's mean squared
// error, mean over the minibatches; not finite where a gradient was not. Schulman, Wolski, Dhariwal, Radford,
// Klimov, Proximal Policy Optimization Algorithms, 2017; Schulman, Moritz, Levine, Jordan, Abbeel,
// High-Dimensional Continuous Control Using Generalized Advantage Estimation, 2016.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice per branch | state of the cell | reward | log-probability | begins |
// allowed | continues | next observation | next goal.
const Learner& ppo_learner();

}  // namespace imprint::agent

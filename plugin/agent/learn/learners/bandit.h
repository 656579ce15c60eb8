#pragma once
// The bandit learner: which choice earns most at once, with its doubt. One branch. Nothing that follows a
// choice counts.
//
// Last layer, one column per goal and choice: Bayesian linear regression of rewards on the features of the
// last hidden layer and 1 (compute/nn/learners/linear_bandit.h), from each sample once, in the order in which
// they come. When rewards fall and stay low (learn/learners/recall.h), it begins again. Hidden layers: Adam
// down the mean squared error of a minibatch of remembered samples,
//   loss = (head's value of the choice - reward)^2
//
// Agents in learning mode take the highest value + exploration * width (LinUCB) or, with thompson, the
// highest value + exploration * width * a normal number.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | reward.
const Learner& bandit_learner();

}  // namespace imprint::agent

#pragma once
// The cloning learner: demonstrations; any branches and continuous actions.
//
// For a sample (s, g, choices, continuous, w):
//   loss = w * (sum over branches of cross-entropy + sum over continuous actions of squared error)

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice per branch | continuous actions | weight.
const Learner& cloning_learner();

}  // namespace imprint::agent

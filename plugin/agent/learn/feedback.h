#pragma once
// The feedback learner: praise and scolding, demonstrations, rewards; one branch.
//
// H(s, g, a) is the expected feedback. For a sample (s, g, a, h, w), with m = 1 when h > 0 and rivals are
// pushed, else 0:
//   loss = w * ((H(s,g,a) - h)^2 + m * margin_weight * sum over a' != a of max(0, H(s,g,a') + margin)^2)
// Knox, Stone, Interactively Shaping Agents via Human Reinforcement: The TAMER Framework, 2009; the margin
// after Hester et al., Deep Q-learning from Demonstrations, 2018.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice | target | weight | margin (1 = its rivals are pushed below -margin).
const Learner& feedback_learner();

}  // namespace imprint::agent

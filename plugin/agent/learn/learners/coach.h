#pragma once
// The COACH learner: feedback and rewards, each learned from once; any branches.
//
// Feedback is an advantage: it depends on the policy. For the steps (s, g, a, f) of a brain in their order:
//   e <- trace_decay * e + grad log pi(a | s, g),   theta <- theta + learning_rate * f * e
// e begins at 0 with an episode; pi is the softmax over the allowed choices of each branch. MacGlashan, Ho,
// Loftin, Peng, Wang, Roberts, Taylor, Littman, Interactive Learning from Policy-Dependent Human Feedback,
// 2017, algorithm 1; credit by onset (learn/samples/credit.h) replaces its fixed delay of feedback. All steps
// of one run use the weights that it began with. Their total change is clipped to max_gradient_norm before
// the rate. Loss: -sum of f * log pi.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

// Sample: observation | goal | choice per branch | reward | begins | allowed.
const Learner& coach_learner();

}  // namespace imprint::agent

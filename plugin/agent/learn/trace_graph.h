#pragma once
// Learning from what an agent just did, once, with an eligibility trace: COACH.
//
// Where feedback depends on the policy it is an advantage: for the steps (s, g, a, f) of a brain in their
// order, f the feedback for a,
//   e <- trace_decay * e + grad log pi(a | s, g),   theta <- theta + learning_rate * f * e,
// and e begins at 0 with an episode. MacGlashan, Ho, Loftin, Peng, Wang, Roberts, Taylor, Littman,
// Interactive Learning from Policy-Dependent Human Feedback, 2017, algorithm 1; for its fixed delay of the
// feedback stands the credit by onset (credit.h). The steps of one run are taken under the weights that it
// began with, and their change together is cut to max_gradient_norm before the rate. pi: softmax over the
// open choices of each branch.

#include "compute/base/result.h"
#include "plugin/agent/learn/learn_graph.h"

namespace imprint::agent {

// Adds state, outputs and updates to a learning program. filled: int32 [P], how many of its brain's K new
// samples (samples: [P * K, W], the first ones) are there. The loss is -sum of f * log pi.
Status describe_tracing(const BrainSpec& spec, const Network& network, const Tensor& filled,
                        const Tensor& samples, double max_norm, LearnGraph& graph);

}  // namespace imprint::agent

#pragma once
// Makes the learning program of a brain: the intake that all learners share, then what its learner adds.

#include "compute/base/result.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/spec/network.h"

namespace imprint::agent {

// A brain with no samples, or whose loss or gradient is not finite, keeps its weights and moments.
// copies: the ring of observation copies (decide/observation_copy.h), or a variable that is not ok().
// spec.learner is not none.
Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network,
                                     const Variable& copies = {}, const Network* pool = nullptr);
// The same for samples that are on the device already: computes from the given tensors and has no inputs.
Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network,
                                          const LearnInputs& given, const Variable& copies = {});

}  // namespace imprint::agent

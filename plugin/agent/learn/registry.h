#pragma once
// Finds learners by kind.

#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

const Learner* find_learner(LearnerKind kind);  // null for LearnerKind::none
// The settings that are 0 and chosen by the learner: Learner::complete.
BrainSpec completed(BrainSpec spec);
// spec.learner is not none.
inline const Learner& learner_of(const BrainSpec& spec) { return *find_learner(spec.learner); }

}  // namespace imprint::agent

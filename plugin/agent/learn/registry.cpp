#include "plugin/agent/learn/registry.h"

namespace imprint::agent {

// Each is in a file pair of its name.
#define IMPRINT_DECLARE(name) const Learner& name##_learner();
IMPRINT_LEARNERS(IMPRINT_DECLARE)
#undef IMPRINT_DECLARE

const Learner* find_learner(LearnerKind kind) {
  switch (kind) {
    case LearnerKind::none:
      break;
#define IMPRINT_CASE(name) \
  case LearnerKind::name:  \
    return &name##_learner();
      IMPRINT_LEARNERS(IMPRINT_CASE)
#undef IMPRINT_CASE
  }
  return nullptr;
}

BrainSpec completed(BrainSpec spec) {
  if (const Learner* learner = find_learner(spec.learner)) learner->complete(spec);
  return spec;
}

// ---- spec/learner_traits.h ----

NetworkTraits network_traits(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  return learner ? learner->network_traits(spec) : NetworkTraits{};
}

bool collects_rollouts(const BrainSpec& spec) {
  const Learner* learner = find_learner(spec.learner);
  return learner && learner->collects_rollouts();
}

}  // namespace imprint::agent

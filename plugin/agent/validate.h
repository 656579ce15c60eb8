#pragma once
// Checks a brain's description before anything is made from it.

#include "compute/base/result.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// Errors: invalid_argument with the field, its value and its range; unsupported (the learner does not serve
// these actions).
Result<> validate(const BrainSpec& spec);
// The completed spec (brain_spec.h), all of it checked.
Result<BrainSpec> checked(const BrainSpec& given);

}  // namespace imprint::agent

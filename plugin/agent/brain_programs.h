#pragma once
// The programs of a brain and the state that they share: compiled by Brain, or baked for devices that are not
// here.

#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/bake.h"
#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/models/model_program.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

struct BrainPrograms {
  InferGraph infer;
  std::optional<LearnGraph> learn;   // none without a learner
  std::vector<StateVariable> state;  // what files and snapshots hold
  // In one block of memory: the state and everything else that only the brain uses, except `evictable`.
  std::vector<Variable> together;
  std::vector<Variable> evictable;  // the replay memory
};

// observations, actions: parts of what the host shares (SharedVariables); empty = none.
Result<BrainPrograms> describe_brain(const BrainSpec& spec, const std::vector<Variable>& observations = {},
                                     const std::vector<Variable>& actions = {});

// Adds every kernel that a brain with this spec needs in any game. Errors: those of validate() and of
// Baker::add.
Result<> bake_brain(Baker& baker, const BrainSpec& spec, const std::vector<Variable>& observations = {},
                    const std::vector<Variable>& actions = {});
// The same for a policy. Errors: those of make_policy and of Baker::add.
Result<> bake_policy(Baker& baker, const PolicySpec& spec);
// The same for a model. Errors: those of describe_model and of Baker::add.
Result<> bake_model(Baker& baker, const ModelSpec& spec);

}  // namespace imprint::agent

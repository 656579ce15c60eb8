#pragma once
// The programs of a brain and the state that they share: what Brain compiles on a device, and what is baked
// for devices that are not there.

#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/bake.h"
#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/learn/learn_graph.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

struct BrainPrograms {
  InferGraph infer;
  std::optional<LearnGraph> learn;   // without a learner none
  std::vector<StateVariable> state;  // what is saved, and kept by snapshots
  std::vector<Variable>
      together;  // what lies in one block of memory: the state, and what else only the brain uses,
  std::vector<Variable> yielding;  // but for the replay memory, which yields
};

// observations, actions: parts of what the host shares (SharedPlaces); none: nothing.
Result<BrainPrograms> describe_brain(const BrainSpec& spec, const std::vector<Variable>& observations = {},
                                     const std::vector<Variable>& actions = {});

// Adds all kernels that a brain of this kind asks for in any game. Errors: those of validate(), and of
// Baker::add.
Status bake_brain(Baker& baker, const BrainSpec& spec, const std::vector<Variable>& observations = {},
                  const std::vector<Variable>& actions = {});
// The same for a policy. Errors: those of make_policy, and of Baker::add.
Status bake_policy(Baker& baker, const PolicySpec& spec);

}  // namespace imprint::agent

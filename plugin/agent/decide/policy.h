#pragma once
// A trained policy from an ONNX file: a brain that does not learn.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/decide/infer_graph.h"
#include "plugin/agent/decide/inference.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/policy_spec.h"

namespace imprint::agent {

// The network over the whole batch, ready to compile. Recurrent state is in device variables, one row per
// agent: it advances only for agents that asked, and reads as zero for an agent that begins an episode.
struct PolicyModel {
  BrainSpec spec;  // as a brain: one brain of agent_capacity agents, no learner
  InferGraph graph;
  std::vector<Variable> state;
  std::uint64_t parameter_count = 0;
  std::string parts;  // PolicyDescription::text()
};

// shared.observations: agents may observe through it; shared.actions: [agent_capacity, outputs], rows of the
// first output. Errors: those of compute/model/policy.h; corrupt_file; invalid_argument (no bytes, capacity
// or latency out of range); out_of_device_memory (state_limit_bytes).
Result<std::unique_ptr<PolicyModel>> make_policy(const PolicySpec& spec, const SharedVariables& shared = {});

}  // namespace imprint::agent

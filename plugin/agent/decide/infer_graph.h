#pragma once
// The program that answers agents: values of the agent's goal, plus noise, masked, then the highest choice.

#include "plugin/agent/decide/inference.h"
#include "plugin/agent/spec/network.h"

namespace imprint::agent {

// Variables that a brain reads and writes in place; empty = none.
struct SharedVariables {
  std::vector<Variable> observations;  // parts of a float32 array, at least one observation long
  std::vector<Variable> actions;       // parts of float32 [agents, action_width]
  // float32 [agents * copy_rows_per_agent, ObservationSpec::width], where copies_observations().
  Variable observation_copies;
  Variable states;  // float32 [P, agents_per_brain, BrainSpec::state_count] of a network with a cell
};

// [P, A, one observation]: the shared observation at each agent's offset [P, A], with 0 for numbers that are
// not finite; where the offset is -1, `given`.
Tensor read_observations(const Tensor& given, std::span<const Variable> observations, const Tensor& offset);

// Width of a row of shared actions: each branch's choice, as floats; the continuous actions; the values.
std::uint32_t action_width(const BrainSpec& spec);

// Each branch: argmax over its allowed choices of value + noise; the first of equals. Continuous actions: the
// outputs, of a policy that draws them plus the drift times its deviation, clamped to [-1, 1].
InferGraph describe_inference(const BrainSpec& spec, const Network& network,
                              const SharedVariables& shared = {}, const Network* pool = nullptr);

}  // namespace imprint::agent

#pragma once
// The program that answers agents: values of the agent's goal, noise, mask, choice.

#include "plugin/agent/decide/inference.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/network.h"

namespace imprint::agent {

// What a brain reads and writes in place; none: nothing.
struct SharedPlaces {
  std::vector<Variable> observations;  // parts of a float32 array, at least an observation long
  std::vector<Variable> actions;       // of float32 [seats, action_width]
  Variable sights;  // float32 [seats * sight_rows, observations], where there is something to learn from
                    // observations
};

// [P, A, observations] of what lies at each agent's place [P, A] (numbers that are not finite: 0), or where
// that is -1 what was given.
Tensor look(const Tensor& given, std::span<const Variable> observations, const Tensor& place);

// A row of shared actions: the index of each branch's choice, as floats; the continuous actions; the values.
std::uint32_t action_width(const BrainSpec& spec);

// Each branch: argmax over its allowed choices of value + noise, the first of equals. Continuous actions: the
// outputs, cut to [-1, 1]. Numbers in the shared buffer that are not finite count as 0: nobody can refuse
// them in time.
InferGraph describe_inference(const BrainSpec& spec, const Network& network, const SharedPlaces& shared = {});

}  // namespace imprint::agent

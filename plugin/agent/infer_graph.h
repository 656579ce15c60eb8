#pragma once
// The program that answers agents: values of the agent's goal, noise, mask, choice.

#include "plugin/agent/inference.h"
#include "plugin/agent/network.h"

namespace imprint::agent {

// What a brain reads and writes in place; variables that are not ok(): nothing.
struct SharedPlaces {
  Variable observations;   // float32, at least an observation long
  Variable actions;        // float32 [seats, action_width]
  Variable sights;         // float32 [seats * sight_rows, observations], where there is something to learn from observations
};

// A row of shared actions: the index of each branch's choice, as floats; the continuous actions; the values.
std::uint32_t action_width(const BrainSpec& spec);

// Each branch: argmax over its allowed choices of value + noise, the first of equals. Continuous actions: the outputs, cut to [-1, 1].
// Numbers in the shared buffer that are not finite count as 0: nobody can refuse them in time.
InferGraph describe_inference(const BrainSpec& spec, const Network& network, const SharedPlaces& shared = {});

}  // namespace imprint::agent

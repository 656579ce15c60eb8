#pragma once
// The program that answers agents: values of the agent's goal, noise, mask, choice.

#include "plugin/agent/inference.h"
#include "plugin/agent/network.h"

namespace imprint::agent {

// Each branch: argmax over its allowed choices of value + noise, the first of equals. Continuous actions: the outputs, cut to [-1, 1].
InferGraph describe_inference(const BrainSpec& spec, const Network& network);

}  // namespace imprint::agent

#pragma once
// The properties that a saved brain and the brain that loads it must share.

#include <string>

#include "compute/base/hash.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// For a whole brain: observations, actions, goals, network, number of brains and agents, learner, size of the
// replay memory. Rates, noise, timing and seeds may differ.
Hash128 schema_hash(const BrainSpec& spec);
// For weights alone: observations and their scale, actions, goals, network, number of brains.
Hash128 network_hash(const BrainSpec& spec);
// The schema in words, for messages: "28 observations, 6 goals, actions 10, network 28-64-64-60 relu, 1
// brains of 1 agents, learner feedback, replay 4096".
std::string schema_text(const BrainSpec& spec);
// The same as JSON, in the form of a brain's file (tools/imprint/brain_file.h): all fields that schema_hash
// takes.
std::string schema_json(const BrainSpec& spec);

}  // namespace imprint::agent

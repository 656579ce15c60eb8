#pragma once
// A game for groups, through the C interface, on device cpu: three agents in a corridor, whose gate opens for
// the others when one of them goes to the lever, which takes it out of the game. Each that gets out by the
// exit afterwards earns 1 for all. An agent that learns for itself has nothing from the lever.
//
// Observation: place (5), gate, time, how many others are there. Choices: left, stay, right. 12 steps. The
// most that a group can earn is 2.

#include "tests/learning/abi_trial.h"

namespace imprint::trials {

// Greedy and played are both the mean of what the last 200 groups earned, with exploration. Throws
// std::runtime_error with the failure's text.
AbiCurve run_gate_trial(const AbiTrial& trial);

}  // namespace imprint::trials

#pragma once
// A game for groups, through the C interface, on device cpu: three agents in a corridor, whose gate opens for
// the others when one of them goes to the lever, which takes it out of the game. Each that gets out by the
// exit afterwards earns 1 for all. An agent that learns for itself has nothing from the lever.
//
// Observation: place (5), gate, time, how many others are there. Choices: left, stay, right. 12 steps. The
// most that a group can earn is 2.

#include <cstdint>
#include <string>
#include <vector>

namespace imprint::trials {

struct GateTrial {
  std::uint64_t seed = 1;
  bool groups = true;            // false: the same rewards, told to each agent that is still there
  std::int64_t steps = 400'000;  // decisions of all agents
};

// Mean of what the last 200 groups earned, with exploration. Throws std::runtime_error with the failure's
// text.
double run_gate_trial(const GateTrial& trial);

// Prints the rows of the table that `only` names, or all. False when a bar is missed.
// steps: 0 = the trial's.
bool print_gate_rows(const std::vector<std::string>& only, std::uint64_t first_seed, std::uint64_t seeds,
                     std::int64_t steps);
inline constexpr const char* kGateRows = "ppo-gate-group ppo-gate-alone";

}  // namespace imprint::trials

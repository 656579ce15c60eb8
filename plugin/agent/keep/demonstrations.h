#pragma once
// Demonstrations as a file: safetensors, so that any tool can make one.
//
//   observation  F32 [N, D]  as agent_demonstrate takes it: before scaling, whole stacks
//   goal         I32 [N]     below goal_count
//   branches     I32 [N, B]  a choice for each branch; without branches there is no such array
//   continuous   F32 [N, C]  -1 .. 1; without continuous actions there is no such array
//   weight       F32 [N]     > 0
//
// Metadata: "format": "imprint demonstrations 1"; "goal_count": "6"; "branch_sizes": "10 3", or "" without
// branches. N >= 1. Other arrays are refused; other metadata are not read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

struct Demonstrations {
  std::uint32_t observation_width = 0, goal_count = 1, continuous_count = 0;
  std::vector<std::uint32_t> branch_sizes;

  // Row-major, N rows each.
  std::vector<float> observations, continuous, weights;
  std::vector<std::int32_t> goals, branches;

  std::size_t count() const { return goals.size(); }
  // "12 demonstrations: 28 numbers, 6 goals, actions 10 3 and 2 continuous"
  std::string text() const;
};

// Checks every number. Bounds for n bytes: linear time, memory 4 n and those of safetensors::parse. Errors:
// those of safetensors::parse; corrupt_file with the field.
Result<Demonstrations> read_demonstrations(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> write_demonstrations(const Demonstrations& demonstrations);

// Appends `more`. Errors: shape_mismatch (other observations, goals or actions).
Result<> append(Demonstrations& to, const Demonstrations& more);

// All that brain `brain` of a saved one was shown, the oldest first. Errors: unsupported (a brain that
// neither clones nor keeps demonstrations: its memory does not say what was shown); invalid_argument (brain);
// not_found (none).
Result<Demonstrations> demonstrations_in(const BrainSpec& spec, std::span<const StateVariable> variables,
                                         const SavedBrain& saved, std::uint32_t brain = 0);

// As samples that wait, or where the brain keeps demonstrations there. brain: UINT32_MAX = each. Errors:
// shape_mismatch; invalid_argument (no room for all).
Result<> show(const Demonstrations& demonstrations, const BrainSpec& spec, std::uint32_t brain,
              ReplayState& replay);
// The demonstrations that the memory keeps.
Result<Demonstrations> demonstrations_of(const BrainSpec& spec, const DemonstrationMemory& memory,
                                         std::uint32_t brain);

// Adds them to the memory of each brain, as if agent_demonstrate had taken them. Errors: unsupported (the
// learner takes none); shape_mismatch; invalid_argument (the memory has no room for all).
Result<> add_demonstrations(const Demonstrations& demonstrations, const BrainSpec& spec,
                            std::span<const StateVariable> variables, SavedBrain& saved);

}  // namespace imprint::agent

#pragma once
// Many steps in one submit: functions of tensors that run one after the other, each so many times, as one
// program. Between two steps everything is as between two runs: each reads the variables as the step before
// left them. So what a step needs to know of its turn lies in a variable that it advances (a counter that
// selects the minibatch, a generator's step), and nothing comes back to the host before the end.
//
// A sequence is a Program like any other: its inputs are uploaded once, its pieces are the dispatches of all
// turns, and it may be cut between any two.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/program/program.h"

namespace imprint {

// What the turns of a sequence may come to, each counted by its dispatches (on the CPU its kernels) and as
// one where it has none. On a device every one of them is recorded, several times for each slot; seconds of
// work in one submit are a matter for several runs.
inline constexpr std::uint32_t kMaxSequenceDispatches = 1u << 20;

struct ProgramPart {
  ProgramDescription description;  // its name is for dumps; its slots count for nothing
  std::uint32_t repeat = 1;        // 0: it is left out
};

struct ProgramSequence {
  std::string name;
  // Inputs of one name are one input, whichever parts read it; every turn of a part reads the same content.
  // Outputs are those of each part's last turn. In the program both stand in the order of the parts.
  std::vector<ProgramPart> parts;
  // Variables that nobody else reads or writes while a run is under way (moments, a learner's own copy of the
  // weights, what it draws from): writing them early, in slices of other frames, is seen by nobody. See
  // Program::first_shared_write.
  std::vector<Variable> own;
  std::uint32_t slots = 3;
};

}  // namespace imprint

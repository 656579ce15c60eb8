#pragma once
// Many steps in one submit: functions of tensors that run in order, each N times, as one program. Each step
// reads the variables as the previous step left them. A step that needs its number keeps a variable and
// advances it, such as a counter that selects the minibatch. Nothing returns to the host before the end.
//
// A sequence is a Program like any other: inputs are uploaded once, the pieces are the dispatches of all
// turns, and a run may be cut between any two.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/program/program.h"

namespace imprint {

// Maximum number of dispatches of all turns (on the CPU: kernels). A turn without any counts as one. A device
// records each, several times per slot. Split seconds of work into several runs.
inline constexpr std::uint32_t kMaxSequenceDispatches = 1u << 20;

struct ProgramPart {
  ProgramDescription description;  // its name is for dumps; its slot_count is ignored
  std::uint32_t repeat = 1;        // 0: the part does not run
  // float32: after each turn ProgramSequence::all_reduce replaces their content. Not with a loop. A device
  // adds the first ones up while it still computes the others: list them in the order in which they are
  // computed.
  std::vector<Variable> summed = {};
};

// Parts that take turns: all of them run in order, each its own number of turns, then all again.
struct ProgramRounds {
  std::size_t first = 0;  // part
  std::size_t parts = 1;
  std::uint32_t repeat = 1;
};

// Sums in host memory that all processes of a computer map: devices copy their numbers into it and the sums
// out of it, and nothing else moves them. Every function is called by all processes in the same order.
class SharedSums {
 public:
  // Both have the same layout, and begin at a multiple of kAlignment.
  struct Memory {
    std::byte* own = nullptr;   // this process's numbers
    std::byte* sums = nullptr;  // one copy for all processes
    std::size_t bytes = 0;      // of each, at least what was asked for
    std::shared_ptr<void> keep;
  };
  static constexpr std::size_t kAlignment = std::size_t{1} << 16;

  virtual ~SharedSums() = default;
  // Whether it is true in all processes.
  virtual bool all(bool own) = 0;
  // Without pointers in all processes if one of them has no such memory.
  virtual Memory allocate(std::size_t bytes) = 0;
  // Replaces sums [first, first + count) by the sums of all processes' own numbers. Blocks until they are
  // there.
  virtual void add(const Memory& memory, std::size_t first, std::size_t count) = 0;
};

struct ProgramSequence {
  std::string name;
  // Inputs of one name are one input for all parts and turns. Outputs are those of each part's last turn.
  // Both are in the order of the parts.
  std::vector<ProgramPart> parts;
  std::vector<ProgramRounds> rounds = {};  // in order; none overlap
  // Variables that nothing else reads or writes during a run (moments, a learner's copy of the weights).
  // Writing them early, in slices of other frames, has no visible effect. See Program::first_shared_write.
  std::vector<Variable> own = {};
  std::uint32_t slot_count = 3;
  // Replaces numbers by their sums over all processes that run this sequence side by side; blocks until all
  // are here. Called on the thread that runs the program, with the variables of ProgramPart::summed in their
  // order, several at a time. Null: there is one process. A device then runs the sequence by
  // run_adding_up() alone (run.h).
  std::function<void(std::span<float>)> all_reduce = {};
  // With all_reduce, for devices that can map host memory: used instead of it, if all processes can.
  std::shared_ptr<SharedSums> shared_sums = {};
};

}  // namespace imprint

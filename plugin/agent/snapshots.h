#pragma once
// Copies of a brain's whole state on the device, for undo: a ring in which the oldest gives way.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/saved_brain.h"

namespace imprint::agent {

// All device memory is taken when the ring is made: keeping a snapshot on a frame thread copies, and nothing else.
class Snapshots {
 public:
  // Makes and places `count` copies of every variable. Errors: out_of_*_memory, unsupported.
  static Result<std::unique_ptr<Snapshots>> create(Runtime& runtime, const std::string& name, std::span<const StateVariable> state,
                                                   std::uint32_t count);

  std::size_t programs_to_compile() const { return compiled_ ? 0 : 2 * copies_.size(); }
  Status compile(Runtime& runtime, const std::function<void()>& advance);

  // Names a new snapshot and keeps what the host knows; the oldest is gone when the ring is full. Errors: unsupported (no ring).
  struct Taken {
    std::uint64_t id = 0;
    Program* program = nullptr;   // to run at the boundary
  };
  Result<Taken> take(const ReplayState& replay);
  // Errors: not_found with what there is.
  struct Found {
    const ReplayState* replay = nullptr;
    Program* program = nullptr;
  };
  Result<Found> find(std::uint64_t id);
  std::uint32_t count() const;
  void each_program(const std::function<void(Program&)>& use);

 private:
  struct Copy {
    std::vector<Variable> variables;
    std::unique_ptr<Program> keep, restore;
    std::uint64_t id = 0;         // 0 = empty
    ReplayState replay;
  };

  std::string name_;
  std::vector<StateVariable> state_;
  std::vector<Copy> copies_;
  std::uint64_t last_id_ = 0;
  bool compiled_ = false;
};

// The graphs behind a snapshot, for tests: copies := state, and back.
ProgramDescription describe_copy(const std::string& name, std::span<const Variable> from, std::span<const Variable> to);

}  // namespace imprint::agent

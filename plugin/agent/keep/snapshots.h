#pragma once
// Copies of a brain's whole state on the device, for undo. A ring: a new one replaces the oldest. Beside the
// ring there may be one copy of the brain's best state.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "plugin/agent/keep/saved_brain.h"
#include "plugin/agent/spec/run_once.h"

namespace imprint::agent {

// create() takes all device memory, so that a snapshot on a frame thread only copies.
class Snapshots {
 public:
  // Makes and places `count` copies of every variable, and with keeps_best another. Errors: out_of_*_memory,
  // unsupported.
  static Result<std::unique_ptr<Snapshots>> create(Runtime& runtime, const std::string& name,
                                                   std::span<const StateVariable> state, std::uint32_t count,
                                                   bool keeps_best);

  // The programs of one entry.
  struct Programs {
    std::unique_ptr<Program> keep, restore;
  };
  std::size_t programs_to_compile() const {
    return programs_.size() == entries_.size() ? 0 : 2 * entries_.size();
  }
  Result<std::vector<Programs>> compile(Runtime& runtime,
                                        const std::function<void()>& advance) const;  // any thread
  void install(std::vector<Programs> programs) {
    programs_ = std::move(programs);
    ran_ = false;
  }  // empty: to be compiled again

  // Names a new snapshot and keeps the host's part. A full ring loses its oldest. Errors: unsupported (no
  // ring).
  struct Taken {
    std::uint64_t id = 0;
    std::size_t copy = 0;
  };
  Result<Taken> take(const ReplayState& replay);
  std::size_t take_best(const ReplayState& replay);  // of a ring that keeps the best; returns its copy
  // Errors: not_found, with a list of the snapshots.
  struct Found {
    const ReplayState* replay = nullptr;
    std::size_t copy = 0;
  };
  Result<Found> find(std::uint64_t id);
  Found find_best() { return {&entries_.back().replay, entries_.size() - 1}; }
  bool has_best() const { return keeps_best_ && entries_.back().id != 0; }
  // The program to run at the boundary. Only while nothing needs compiling.
  Program& program(std::size_t copy, bool restores) {
    ran_ = true;
    return restores ? *programs_[copy].restore : *programs_[copy].keep;
  }
  std::uint32_t count() const;
  Result<> run_once(RunOnce& runs);  // all programs, if none has run; only when all are compiled
  void each_program(const std::function<void(Program&)>& use);

 private:
  struct Entry {
    std::vector<Variable> variables;
    std::uint64_t id = 0;  // 0 = empty
    ReplayState replay;
  };

  std::string name_;
  std::vector<StateVariable> state_;
  std::span<const Entry> ring() const { return std::span(entries_).first(entries_.size() - keeps_best_); }

  std::vector<Entry> entries_;      // the ring, then the best one
  std::vector<Programs> programs_;  // per entry, or none
  bool keeps_best_ = false;
  std::uint64_t last_id_ = 0;
  bool ran_ = false;
};

// The variables of a snapshot, in the order of the state, and the graph that copies `from` to `to`.
std::vector<Variable> describe_snapshot(std::span<const StateVariable> state, std::uint32_t index);
ProgramDescription describe_copy(const std::string& name, std::span<const Variable> from,
                                 std::span<const Variable> to);

}  // namespace imprint::agent

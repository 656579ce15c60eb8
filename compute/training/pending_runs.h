#pragma once
// Runs of training programs that a device may still compute, oldest first. Internal.
//
// The host prepares later runs meanwhile. Short runs are submitted several at a time, since every submission
// costs the host and the device microseconds. About kMostAhead of work is under way, so that a stop takes
// effect soon.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "compute/program/run.h"

namespace imprint::training {

class PendingRuns {
 public:
  static constexpr double kMostAhead = 4e-3;   // seconds
  static constexpr std::uint32_t kSlots = 24;  // at most, of a program

  struct Run {
    Program* program = nullptr;
    std::int64_t samples = 0, step = 0, batch = 0;  // step and batch: those done after it
    bool reports = false;                           // to the caller
    std::uint32_t slot = 0;
  };
  // done: called for each run, in order, when it is complete.
  using Done = std::function<Result<>(const Run& run, const std::vector<HostTensor>& outputs)>;
  PendingRuns(Session& session, Done done) : session_(session), done_(std::move(done)) {}

  // May wait for earlier runs first. Errors: those of Session and of `done`.
  Result<> start(Run run, std::span<const HostTensor> inputs);
  // Waits for all. The first error counts.
  Result<> finish_all();

 private:
  using Clock = std::chrono::steady_clock;
  Result<> finish_oldest();
  void count_finished();

  Session& session_;
  Done done_;
  std::deque<Run> runs_;
  std::size_t unsubmitted_ = 0;  // the newest of them
  bool has_failed_ = false;      // the runs after it are waited for, and that is all
  std::uint32_t next_slot_ = 0;
  // Seconds per run, of the last ones that followed each other on a busy device; 0: not known yet.
  double seconds_ = 0;
  Clock::time_point busy_since_;
  int counted_ = 0;
};

}  // namespace imprint::training

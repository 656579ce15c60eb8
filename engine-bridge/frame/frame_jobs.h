#pragma once
// The jobs of a context: enqueued, partly run, and issued but not complete; and what their programs cost.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/vk/queue.h"
#include "engine-bridge/frame/cost_model.h"
#include "engine-bridge/frame/frame.h"
#include "engine-bridge/frame/frame_schedule.h"

namespace imprint::bridge {

// Runs whole in the first frame at or after `frame`: a program's run, or other commands when program is null.
struct ImmediateJob {
  std::uint64_t frame = 0;
  Program* program = nullptr;
  std::uint32_t slot = 0;
  Commands commands;
  JobCompleted on_complete;
};

// A learn job's program. The schedule holds the job itself under the same id.
struct LearnRun {
  std::uint64_t id = 0;
  Program* program = nullptr;
  std::uint32_t slot = 0;
  JobCompleted on_complete;
};

// Frame thread.
class FrameJobs {
 public:
  explicit FrameJobs(const DeviceRates& rates);

  // ---- enqueued ----
  // Errors: invalid_argument (no program, no such slot, a falling deadline), wrong_state (the slot is in use,
  // or an immediate job meets a learn job of its program that has begun).
  Result<> add(FrameJob job, std::uint64_t frame);
  void add(const Commands& commands, std::uint64_t frame, JobCompleted on_complete);
  // Forgets jobs that are not complete; their on_complete is not called.
  void cancel(const Program& program);
  void cancel(const Commands& commands);
  bool empty() const { return immediate_.empty() && schedule_.empty() && issued_.empty(); }
  bool has_jobs_of(const Program& program) const;  // that are not complete
  FrameEstimate estimate(std::uint64_t frame);

  // ---- the frame being issued ----
  std::size_t count_immediate(std::uint64_t frame) const;  // enqueued up to this frame
  std::span<const ImmediateJob> immediate(std::size_t count) const {
    return std::span(immediate_).first(count);
  }
  float immediate_us(std::size_t count);  // estimated
  FrameSchedule& schedule() { return schedule_; }
  const LearnJob& learn_job(const Step& step) const { return schedule_.jobs()[step.job]; }
  const LearnRun& learn_run(const Step& step) const;
  // The first `count` immediate jobs, or the slice's steps, are complete with the ticket.
  void immediate_issued(std::size_t count, vk::Ticket ticket, std::uint64_t frame);
  void slice_issued(const FramePlan& plan, const Slice& slice, vk::Ticket ticket, std::uint64_t frame);

  // ---- complete ----
  void call_completed(vk::Ticket complete);
  bool calling_completed() const { return calling_completed_; }

  // ---- cost ----
  ProgramCost& cost_of(const Program& program);     // a guess at first
  ProgramCost* known_cost(const Program* program);  // null: unknown or cancelled
  float program_us(const Program& program);         // of a whole run

 private:
  // In the order of tickets.
  struct Issued {
    vk::Ticket ticket;
    std::uint64_t frame = 0;
    const Program* program = nullptr;  // null: commands
    Commands commands;
    std::uint32_t slot = 0;
    JobCompleted on_complete;
  };
  // The name and the piece count tell a program from a later one at the same address.
  struct KnownProgram {
    std::string name;
    ProgramCost cost;
  };

  Result<> check_slot(const Program& program, std::uint32_t slot) const;
  Result<> check_no_begun_learn_job(const Program& program) const;
  Result<> schedule_learn_job(const FrameJob& job);

  const DeviceRates rates_;
  std::uint64_t next_id_ = 1;
  std::vector<ImmediateJob> immediate_;
  std::vector<LearnRun> learn_;
  FrameSchedule schedule_;
  std::vector<Issued> issued_;  // oldest first
  std::unordered_map<const Program*, KnownProgram> known_;
  bool calling_completed_ = false;
};

}  // namespace imprint::bridge

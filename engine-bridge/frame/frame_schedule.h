#pragma once
// Plans which pieces of which learn jobs run in a frame. Plain numbers: no Vulkan, no Program.
//
// A job's pieces run once each, in order. Pieces before commit_piece may run in any frame as the budget
// allows. The rest runs unbroken in the first frame at or after the job's deadline, so that a job's results
// appear in the same frame whatever the budget. Jobs of one stream, and jobs of one program, run one after
// the other.

#include <cstdint>
#include <vector>

#include "compute/base/result.h"
#include "engine-bridge/frame/cost_model.h"

namespace imprint::bridge {

struct LearnJob {
  std::uint64_t id = 0;        // chosen by the caller
  std::uintptr_t program = 0;  // identity: jobs of one program never overlap
  std::uint64_t stream = 0;
  std::uint64_t deadline_frame = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t commit_piece = 0;     // first piece that waits for the deadline; <= piece_count
  const ProgramCost* cost = nullptr;  // piece_count() pieces; outlives the job
  std::uint32_t cursor = 0;           // next piece
  bool finished() const { return cursor == piece_count; }
};

struct FrameRequest {
  std::uint64_t frame = 0;
  bool everything = false;  // all jobs count as due
  float budget_us = 0;      // for jobs that are not due, without immediate jobs; <= 0: none
  float max_slice_us = 0;   // 0 = no limit
  // Pieces that the frame thread has time for. Due pieces count, but always run.
  std::uint32_t max_pieces = UINT32_MAX;
  bool first_slice_open = false;  // immediate jobs already fill first_slice_us of the first slice
  float first_slice_us = 0;
};

// Consecutive pieces [begin, end) of a job, by index into FrameSchedule::jobs().
struct Step {
  std::uint32_t job = 0;
  std::uint32_t begin = 0, end = 0;
  float us = 0;
};

struct Slice {
  std::uint32_t first_step = 0, step_count = 0;
  float us = 0;  // sum over its steps
};

// Reused, so that planning allocates nothing.
struct FramePlan {
  std::vector<Step> steps;
  std::vector<Slice> slices;  // when first_slice_open, the first one exists and may be empty
  float due_us = 0;           // of jobs at their deadline
  float early_us = 0;         // of other jobs
  float left_us = 0;          // estimated cost of the rest after this frame
  std::uint32_t pieces = 0;
  bool held_back = false;  // max_pieces stopped learning that the budget allowed
};

class FrameSchedule {
 public:
  FrameSchedule() { jobs_.reserve(64); }

  // Errors: invalid_argument (the deadline is before that of an unfinished job of the same stream or program,
  // which runs first).
  Result<> add(const LearnJob& job);

  // Estimated cost of all that is left: of jobs that are due in the frame, and of the others.
  struct Left {
    float due_us = 0, later_us = 0;
  };
  Left left(std::uint64_t frame) const;

  // Changes nothing but saved_us_.
  void plan(const FrameRequest& request, FramePlan& plan);
  // The slice is with the GPU: its jobs move on.
  void issued(const FramePlan& plan, const Slice& slice);
  // Forgets finished jobs. Indices of an older plan become invalid.
  void sweep();
  // Forgets all jobs of a program, finished or not.
  void cancel(std::uintptr_t program);

  const std::vector<LearnJob>& jobs() const { return jobs_; }  // in the order of add()
  bool empty() const { return jobs_.empty(); }

 private:
  bool waits_for_earlier(std::size_t job, const FramePlan& plan) const;

  std::vector<LearnJob> jobs_;
  // A piece longer than a frame's budget could never run before its deadline. So the unused budget of earlier
  // frames is saved for it: the budget holds on average, and the worst frame exceeds it by one piece.
  float saved_us_ = 0;
};

}  // namespace imprint::bridge

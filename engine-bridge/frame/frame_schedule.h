#pragma once
// Which pieces of which learn jobs run in a frame. Pure planning on plain numbers: no Vulkan, no Program.
//
// A job's pieces run once each, in order. Pieces before commit_piece may run in any frame as the budget
// allows; the rest runs unbroken in the first frame at or after the job's deadline, so that what a job leaves
// behind appears in the same frame whatever the budget. Jobs of one stream, and jobs of one program, run
// strictly one after the other.

#include <cstdint>
#include <vector>

#include "compute/base/result.h"
#include "engine-bridge/frame/cost_model.h"

namespace imprint::bridge {

struct LearnJob {
  std::uint64_t id = 0;        // the caller's
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
  bool everything = false;  // all jobs as if due
  float budget_us = 0;      // for jobs that are not due, after what immediate jobs take; <= 0: none
  float max_slice_us = 0;   // 0 = no limit
  std::uint32_t max_pieces = UINT32_MAX;  // that the frame thread has time for, those that are due among
                                          // them; what is due runs all the same
  bool first_slice_open = false;          // immediate jobs already fill first_slice_us of the first slice
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
  float us = 0;  // of its steps
};

// Reused from frame to frame, so that planning allocates nothing.
struct FramePlan {
  std::vector<Step> steps;
  std::vector<Slice> slices;  // when first_slice_open, the first one exists and may be empty
  float due_us = 0;           // of jobs at their deadline
  float early_us = 0;         // of the others
  float left_us = 0;          // estimated cost of what remains after this frame
  std::uint32_t pieces = 0;
  bool held_back = false;  // by max_pieces, where the budget had room
};

class FrameSchedule {
 public:
  FrameSchedule() { jobs_.reserve(64); }

  // Errors: invalid_argument when the deadline lies before that of an unfinished job of the same stream or
  // program, which runs first.
  Status add(const LearnJob& job);

  // What is left of all jobs, estimated: of those that are due in the frame, and of the others.
  struct Left {
    float due_us = 0, later_us = 0;
  };
  Left left(std::uint64_t frame) const;

  // Decides, and moves nothing but the credit (below).
  void plan(const FrameRequest& request, FramePlan& plan);
  // The slice was handed to the GPU: its jobs move on.
  void issued(const FramePlan& plan, const Slice& slice);
  // Forgets finished jobs; indices of an older plan no longer hold.
  void sweep();
  // Forgets all jobs of a program, finished or not.
  void cancel(std::uintptr_t program);

  const std::vector<LearnJob>& jobs() const { return jobs_; }  // in the order of add()
  bool empty() const { return jobs_.empty(); }

 private:
  bool waits_for_earlier(std::size_t job, const FramePlan& plan) const;

  std::vector<LearnJob> jobs_;
  // A piece that is longer than a whole frame's budget could never run before its deadline. So what such a
  // piece leaves unused is kept until it suffices: the budget then holds on average, and the worst frame
  // exceeds it by one piece.
  float credit_us_ = 0;
};

}  // namespace imprint::bridge

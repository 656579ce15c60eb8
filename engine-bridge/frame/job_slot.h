#pragma once
// What a new job asks of those that a context holds: that its slot is free, and its program not in the middle
// of a run; and how it joins them.

#include <algorithm>
#include <cstdint>
#include <string>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "engine-bridge/context.h"
#include "engine-bridge/frame/frame_schedule.h"

namespace imprint::bridge {

// `jobs`: lists of whatever has a program and a slot. Errors: invalid_argument (no such slot), wrong_state
// (an earlier job has it still).
template <class... Jobs>
Status check_slot(const Program& program, std::uint32_t slot, const Jobs&... jobs) {
  const auto what = [&] { return "enqueue: slot " + std::to_string(slot) + " of '" + program.name() + "'"; };
  if (slot >= program.slot_count())
    return make_error(ErrorCode::invalid_argument,
                      what() + ", which has " + std::to_string(program.slot_count()));
  if (program.stats().io_bytes == 0) return {};  // nothing in the slot that a second run could disturb
  const auto holds = [&](const auto& job) { return job.program == &program && job.slot == slot; };
  if (!(std::ranges::any_of(jobs, holds) || ...)) return {};
  return make_error(
      ErrorCode::wrong_state,
      what() + " is still in use by an earlier job: wait for its on_complete, or use another slot");
}

// An immediate job runs at once, so no learn job of its program may have begun. Errors: wrong_state.
inline Status check_not_begun(const Program& program, const FrameSchedule& schedule) {
  const auto begun = [&](const LearnJob& learn) {
    return learn.program == reinterpret_cast<std::uintptr_t>(&program) && learn.cursor > 0;
  };
  if (std::ranges::none_of(schedule.jobs(), begun)) return {};
  return make_error(ErrorCode::wrong_state,
                    "enqueue: '" + program.name() +
                        "' is in the middle of a learn job: two runs of one program cannot overlap");
}

// Errors: those of FrameSchedule::add, with the program's name.
inline Status schedule_learn_job(FrameSchedule& schedule, const Job& job, std::uint64_t id,
                                 const ProgramCost& cost) {
  const Program& program = *job.program;
  LearnJob learn;
  learn.id = id;
  learn.program = reinterpret_cast<std::uintptr_t>(&program);
  learn.stream = job.stream;
  learn.deadline_frame = job.deadline_frame;
  learn.piece_count = program.piece_count();
  learn.commit_piece =
      program.commit_piece();  // so that outputs, too, appear in the same frame whatever the budget
  learn.cost = &cost;
  const Status added = schedule.add(learn);
  return added
             ? Status()
             : make_error(added.error().code, "enqueue: '" + program.name() + "': " + added.error().message);
}

}  // namespace imprint::bridge

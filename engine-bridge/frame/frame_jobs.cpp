#include "engine-bridge/frame/frame_jobs.h"

#include <algorithm>
#include <utility>

#include "compute/base/text.h"

namespace imprint::bridge {
namespace {

// Identifies a program to the schedule, which knows no Program.
std::uintptr_t id_of(const Program& program) { return reinterpret_cast<std::uintptr_t>(&program); }

bool same(const Commands& a, const Commands& b) { return a.primary == b.primary && a.work == b.work; }

}  // namespace

FrameJobs::FrameJobs(const DeviceRates& rates) : rates_(rates) {
  immediate_.reserve(64);
  learn_.reserve(64);
  issued_.reserve(64);
}

Result<> FrameJobs::check_slot(const Program& program, std::uint32_t slot) const {
  const auto where = [&] { return text("enqueue: '", program.name(), "': slot: found ", slot); };
  if (slot >= program.slot_count())
    return make_error(ErrorCode::invalid_argument,
                      text(where(), ", expected 0 .. ", program.slot_count() - 1, "."));
  if (program.stats().io_bytes == 0) return {};  // a second run has nothing in the slot to disturb
  const auto holds = [&](const auto& job) { return job.program == &program && job.slot == slot; };
  if (std::ranges::none_of(issued_, holds) && std::ranges::none_of(learn_, holds) &&
      std::ranges::none_of(immediate_, holds))
    return {};
  return make_error(ErrorCode::wrong_state,
                    text(where(), ", which an earlier job is still using. Wait for its ",
                         "on_complete, or use another slot."));
}

Result<> FrameJobs::check_no_begun_learn_job(const Program& program) const {
  const auto begun = [&](const LearnJob& learn) {
    return learn.program == id_of(program) && learn.cursor > 0;
  };
  if (std::ranges::none_of(schedule_.jobs(), begun)) return {};
  return make_error(ErrorCode::wrong_state, text("enqueue: '", program.name(),
                                                 "' has a learn job that has begun, and two runs of one ",
                                                 "program cannot overlap. Wait for its on_complete."));
}

Result<> FrameJobs::schedule_learn_job(const FrameJob& job) {
  const Program& program = *job.program;
  LearnJob learn;
  learn.id = next_id_;
  learn.program = id_of(program);
  learn.stream = job.stream;
  learn.deadline_frame = job.deadline_frame;
  learn.piece_count = program.piece_count();
  learn.commit_piece = program.commit_piece();
  learn.cost = &cost_of(program);
  const Result<> added = schedule_.add(learn);
  if (added) return {};
  return make_error(added.error().code, text("enqueue: '", program.name(), "': ", added.error().message));
}

Result<> FrameJobs::add(FrameJob job, std::uint64_t frame) {
  if (!job.program)
    return make_error(ErrorCode::invalid_argument, "enqueue: program: found null, expected a program.");
  Program& program = *job.program;
  IMPRINT_CHECK(check_slot(program, job.slot));
  if (job.kind == FrameJobKind::immediate) {
    IMPRINT_CHECK(check_no_begun_learn_job(program));
    immediate_.push_back({frame, &program, job.slot, {}, std::move(job.on_complete)});
    return {};
  }
  IMPRINT_CHECK(schedule_learn_job(job));
  learn_.push_back({next_id_++, &program, job.slot, std::move(job.on_complete)});
  return {};
}

void FrameJobs::add(const Commands& commands, std::uint64_t frame, JobCompleted on_complete) {
  immediate_.push_back({frame, nullptr, 0, commands, std::move(on_complete)});
}

void FrameJobs::cancel(const Program& program) {
  const auto runs = [&](const auto& job) { return job.program == &program; };
  std::erase_if(immediate_, runs);
  std::erase_if(learn_, runs);
  std::erase_if(issued_, runs);
  schedule_.cancel(id_of(program));
  known_.erase(&program);
}

void FrameJobs::cancel(const Commands& commands) {
  if (!commands.primary && !commands.work) return;
  const auto runs = [&](const auto& job) { return !job.program && same(job.commands, commands); };
  std::erase_if(immediate_, runs);
  std::erase_if(issued_, runs);
}

bool FrameJobs::has_jobs_of(const Program& program) const {
  const auto runs = [&](const auto& job) { return job.program == &program; };
  return std::ranges::any_of(learn_, runs) || std::ranges::any_of(immediate_, runs) ||
         std::ranges::any_of(issued_, runs);
}

FrameEstimate FrameJobs::estimate(std::uint64_t frame) {
  const FrameSchedule::Left left = schedule_.left(frame);
  return {left.due_us + immediate_us(immediate_.size()), left.later_us};
}

std::size_t FrameJobs::count_immediate(std::uint64_t frame) const {
  const auto later =
      std::ranges::find_if(immediate_, [&](const ImmediateJob& job) { return job.frame > frame; });
  return static_cast<std::size_t>(later - immediate_.begin());
}

float FrameJobs::immediate_us(std::size_t count) {
  float us = 0;
  for (const ImmediateJob& job : immediate(count))
    if (job.program) us += program_us(*job.program);
  return us;
}

const LearnRun& FrameJobs::learn_run(const Step& step) const {
  // The schedule and learn_ hold the same jobs.
  return *std::ranges::find(learn_, schedule_.jobs()[step.job].id, &LearnRun::id);
}

void FrameJobs::immediate_issued(std::size_t count, vk::Ticket ticket, std::uint64_t frame) {
  for (ImmediateJob& job : std::span(immediate_).first(count))
    issued_.push_back({ticket, frame, job.program, job.commands, job.slot, std::move(job.on_complete)});
  immediate_.erase(immediate_.begin(), immediate_.begin() + static_cast<std::ptrdiff_t>(count));
}

void FrameJobs::slice_issued(const FramePlan& plan, const Slice& slice, vk::Ticket ticket,
                             std::uint64_t frame) {
  schedule_.issued(plan, slice);
  for (std::uint32_t i = 0; i < slice.step_count; ++i) {
    const LearnJob& job = learn_job(plan.steps[slice.first_step + i]);
    if (!job.finished()) continue;
    const auto learn = std::ranges::find(learn_, job.id, &LearnRun::id);
    issued_.push_back({ticket, frame, learn->program, {}, learn->slot, std::move(learn->on_complete)});
    learn_.erase(learn);
  }
}

void FrameJobs::call_completed(vk::Ticket complete) {
  calling_completed_ = true;
  while (!issued_.empty() && issued_.front().ticket <= complete) {
    // Removed first: the callback may enqueue and cancel.
    const Issued done = std::move(issued_.front());
    issued_.erase(issued_.begin());
    if (done.on_complete) done.on_complete(done.frame);
  }
  calling_completed_ = false;
}

ProgramCost& FrameJobs::cost_of(const Program& program) {
  const auto [entry, added] = known_.try_emplace(&program);
  KnownProgram& known = entry->second;
  if (added || known.cost.piece_count() != program.piece_count() || known.name != program.name()) {
    const ProgramStats& stats = program.stats();
    known.name = program.name();
    known.cost = ProgramCost::guess({program.piece_count(), stats.bytes_moved, stats.flops}, rates_);
  }
  return known.cost;
}

ProgramCost* FrameJobs::known_cost(const Program* program) {
  const auto known = known_.find(program);
  return known == known_.end() ? nullptr : &known->second.cost;
}

float FrameJobs::program_us(const Program& program) {
  return cost_of(program).range_us(0, program.piece_count());
}

}  // namespace imprint::bridge

#include "engine-bridge/frame/cpu_context.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compute/cpu/kernels.h"
#include "engine-bridge/frame/job_slot.h"

namespace imprint::bridge {
namespace {

constexpr int kRuns = 3;  // of a measurement; the first one fetches what it needs into the caches

float us_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::unique_ptr<Context> Context::on_cpu(const LogSink& log, const Budget& budget) {
  return std::make_unique<CpuContext>(log, budget);
}

std::string CpuContext::report() const {
  return std::string("device: the processor, ") + cpu::kernels().name +
         " kernels on the frame thread, no Vulkan\n" + "completion: when submit returns\n" +
         "time: measured\n";
}

// ---- create-time ----

Status CpuContext::check_loud(const char* call) const {
  if (!quiet_) return {};
  return make_error(ErrorCode::wrong_state,
                    std::string(call) + ": the context is quiet since quiesce: call resume first");
}

Status CpuContext::check_closed(const char* call) const {
  if (state_ == State::closed) return {};
  return make_error(ErrorCode::wrong_state, std::string(call) + ": a frame is open: call frame_end first");
}

Status CpuContext::run_now(const Commands& commands) {
  IMPRINT_CHECK(check_loud("run_now"));
  if (!commands.work)
    return make_error(ErrorCode::invalid_argument, "run_now: the commands are null, or a device's");
  commands.work->run();
  return {};
}

Status CpuContext::run_now(Program& program) {
  IMPRINT_CHECK(check_loud("run_now"));
  return program.run_pieces(0, 0, program.piece_count());
}

Status CpuContext::measure(Program& program) {
  IMPRINT_CHECK(check_loud("measure"));
  IMPRINT_CHECK(check_closed("measure"));
  const std::uint32_t pure = std::min(program.first_state_write(), program.piece_count());
  std::vector<float> us(pure, std::numeric_limits<float>::max());
  for (int run = 0; run < kRuns; ++run)
    for (std::uint32_t piece = 0; piece < pure; ++piece) {
      const Clock::time_point start = Clock::now();
      IMPRINT_CHECK(program.run_pieces(0, piece, 1));
      us[piece] = std::min(us[piece], us_since(start));
    }
  // The rest writes variables and cannot be tried: taken to be as long as the kernels before (piece 0 is
  // none).
  float sum = 0;
  for (std::size_t i = 1; i < us.size(); ++i) sum += us[i];
  us.resize(program.piece_count(), us.size() > 1 ? sum / static_cast<float>(us.size() - 1) : 1.0f);
  cost_of(program) = ProgramCost::measured(us);
  return {};
}

Status CpuContext::drain(std::uint64_t timeout_ns) {
  IMPRINT_CHECK(check_loud("drain"));
  IMPRINT_CHECK(check_closed("drain"));
  const Clock::time_point end =
      Clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 1ull << 60));
  for (;;) {
    run_jobs(std::numeric_limits<float>::infinity(), true);
    call_completed();
    publish_stats();
    if (immediate_.empty() && schedule_.empty() && done_.empty()) return {};
    if (Clock::now() >= end)
      return make_error(ErrorCode::not_ready,
                        "drain: completed jobs kept enqueueing further ones until the time was over");
  }
}

Status CpuContext::quiesce(std::uint64_t) {
  IMPRINT_CHECK(check_closed("quiesce"));
  quiet_ = true;
  return {};
}

Status CpuContext::resume() {
  if (!quiet_)
    return make_error(ErrorCode::wrong_state, "resume: the context is not quiet: call quiesce first");
  quiet_ = false;
  return {};
}

void CpuContext::cancel(const Program& program) {
  const auto runs = [&](const auto& job) { return job.program == &program; };
  std::erase_if(immediate_, runs);
  std::erase_if(learn_, runs);
  std::erase_if(done_, runs);
  schedule_.cancel(reinterpret_cast<std::uintptr_t>(&program));
  costs_.erase(&program);
}

void CpuContext::cancel(const Commands& commands) {
  if (!commands.work) return;
  const auto runs = [&](const auto& job) { return job.work == commands.work; };
  std::erase_if(immediate_, runs);
  std::erase_if(done_, runs);
}

// ---- the frame ----

Status CpuContext::check_open(const char* call) const {
  if (state_ == State::open) return {};
  return make_error(
      ErrorCode::wrong_state,
      std::string(call) + (state_ == State::closed
                               ? ": no frame is open: call frame_begin first"
                               : ": this frame's jobs were already given to submit: call frame_end"));
}

Status CpuContext::frame_begin(const FrameInfo& info) {
  IMPRINT_CHECK(check_loud("frame_begin"));
  IMPRINT_CHECK(check_closed("frame_begin"));
  if (frame_ && info.frame <= *frame_)
    return make_error(ErrorCode::wrong_state, "frame_begin: frame " + std::to_string(info.frame) +
                                                  " does not follow frame " + std::to_string(*frame_) +
                                                  ": frame numbers rise");
  call_us_ = 0;
  FrameCall call(*this);
  frame_ = info.frame;
  state_ = State::open;
  call_completed();
  return {};
}

void CpuContext::call_completed() {
  in_completion_ = true;
  for (std::size_t count = done_.size(); count > 0 && !done_.empty(); --count) {
    // Taken out first: the callback may enqueue and cancel.
    const Done done = std::move(done_.front());
    done_.pop_front();
    if (done.on_complete) done.on_complete(done.frame);
  }
  in_completion_ = false;
}

Status CpuContext::enqueue(Job job) {
  if (!in_completion_) IMPRINT_CHECK(check_open("enqueue"));
  FrameCall call(*this);
  if (!job.program) return make_error(ErrorCode::invalid_argument, "enqueue: the job has no program");
  Program& program = *job.program;
  IMPRINT_CHECK(check_slot(program, job.slot, done_, learn_, immediate_));
  if (job.kind == JobKind::immediate) {
    IMPRINT_CHECK(check_not_begun(program, schedule_));
    immediate_.push_back({0, &program, job.slot, nullptr, std::move(job.on_complete)});
    return {};
  }
  IMPRINT_CHECK(schedule_learn_job(schedule_, job, next_id_, cost_of(program)));
  learn_.push_back({next_id_++, &program, job.slot, nullptr, std::move(job.on_complete)});
  return {};
}

Status CpuContext::enqueue(const Commands& commands, std::function<void(std::uint64_t)> on_complete) {
  if (!in_completion_) IMPRINT_CHECK(check_open("enqueue"));
  if (!commands.work)
    return make_error(ErrorCode::invalid_argument, "enqueue: the commands are null, or a device's");
  immediate_.push_back({0, nullptr, 0, commands.work, std::move(on_complete)});
  return {};
}

Error CpuContext::no_buffers(const char* call) {
  return make_error(
      ErrorCode::unsupported,
      std::string(call) + ": this context runs on the processor, which no buffer of a GPU's is shared with");
}

Status CpuContext::submit(const SubmitInfo& info) {
  IMPRINT_CHECK(check_open("submit"));
  if (!info.waits.empty() || !info.signals.empty())
    return make_error(ErrorCode::unsupported,
                      "submit: this context runs on the processor, where no semaphore of a device is waited "
                      "for or signalled");
  FrameCall call(*this);
  std::uint32_t budget_us = info.budget_us;
  if (budget_us == kFromBudget) budget_us = budget_.gpu_us_per_frame;
  if (budget_.cpu_us_per_frame) budget_us = std::min(budget_us, budget_.cpu_us_per_frame);
  state_ = State::submitted;
  const float budget =
      budget_us == kFromBudget ? std::numeric_limits<float>::infinity() : static_cast<float>(budget_us);
  const Clock::time_point start = Clock::now();
  run_jobs(budget, false);
  if (us_since(start) > budget) ++counted_.over_budget_frames;
  return {};
}

void CpuContext::run_jobs(float learn_budget_us, bool everything) {
  ++counted_.submits;
  counted_.times = {frame_.value_or(0), 0, 0};
  const Clock::time_point start = Clock::now();
  if (!immediate_.empty()) {
    run_immediate();
    counted_.times.immediate_us = us_since(start);
  }
  FrameRequest request;
  request.frame = frame_.value_or(0);
  request.everything = everything;
  request.budget_us = learn_budget_us - counted_.times.immediate_us;
  schedule_.plan(request, plan_);
  for (const Slice& slice : plan_.slices) {
    for (std::uint32_t i = 0; i < slice.step_count; ++i) run_step(plan_.steps[slice.first_step + i]);
    schedule_.issued(plan_, slice);
    if (slice.step_count > 0) ++counted_.slices;
  }
  for (const LearnJob& job : schedule_.jobs()) {
    if (!job.finished()) continue;
    const auto learn = std::ranges::find(learn_, job.id, &Pending::id);
    complete(*learn);
    learn_.erase(learn);
  }
  schedule_.sweep();
}

void CpuContext::run_immediate() {
  for (Pending& job : immediate_) {
    if (job.work)
      job.work->run();
    else
      (void)job.program->run_pieces(job.slot, 0,
                                    job.program->piece_count());  // slot and pieces exist: enqueue looked
    complete(job);
  }
  immediate_.clear();
}

void CpuContext::run_step(const Step& step) {
  const Pending& learn = *std::ranges::find(learn_, schedule_.jobs()[step.job].id,
                                            &Pending::id);  // learn_ and the schedule hold the same jobs
  const Clock::time_point start = Clock::now();
  (void)learn.program->run_pieces(learn.slot, step.begin, step.end - step.begin);
  const float us = us_since(start);
  cost_of(*learn.program).correct(step.us, us, 1);
  counted_.times.learn_us += us;
}

void CpuContext::complete(Pending& job) {
  done_.push_back({job.program, job.work, job.slot, frame_.value_or(0), std::move(job.on_complete)});
}

ProgramCost& CpuContext::cost_of(const Program& program) {
  const auto [entry, added] = costs_.try_emplace(&program);
  if (added || entry->second.piece_count() != program.piece_count()) {
    const ProgramStats& stats = program.stats();
    entry->second = ProgramCost::guess({program.piece_count(), stats.bytes_moved, stats.flops},
                                       rates_of(DeviceKind::processor));
  }
  return entry->second;
}

Result<FrameEstimate> CpuContext::estimate() {
  IMPRINT_CHECK(check_open("estimate"));
  const FrameSchedule::Left left = schedule_.left(*frame_);
  FrameEstimate estimate{left.due_us, left.later_us};
  for (const Pending& job : immediate_)
    if (job.program) estimate.due_us += cost_of(*job.program).range_us(0, job.program->piece_count());
  return estimate;
}

Result<std::uint32_t> CpuContext::record(VkCommandBuffer, std::uint32_t) {
  return make_error(ErrorCode::unsupported,
                    "record: the context is the processor's, which has nothing to record: call submit");
}

Status CpuContext::frame_end() {
  if (state_ == State::closed)
    return make_error(ErrorCode::wrong_state, "frame_end: no frame is open: call frame_begin first");
  state_ = State::closed;
  ++counted_.frames;
  counted_.frame_cpu_us = call_us_;
  if (budget_.cpu_us_per_frame && call_us_ > static_cast<float>(budget_.cpu_us_per_frame))
    ++counted_.over_cpu_frames;
  publish_stats();
  return {};
}

void CpuContext::enter_frame_call() {
  if (call_depth_++ == 0) call_start_ = Clock::now();
}

void CpuContext::leave_frame_call() {
  if (--call_depth_ == 0) call_us_ += us_since(call_start_);
}

ContextStats CpuContext::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

void CpuContext::publish_stats() {
  const std::lock_guard lock(stats_mutex_);
  published_ = counted_;
}

}  // namespace imprint::bridge

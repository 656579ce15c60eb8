#include "engine-bridge/frame/frame_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compute/base/text.h"
#include "engine-bridge/frame/ticks.h"
#include "engine-bridge/host/lost_device.h"

namespace imprint::bridge {

// Counts a frame call's time; see enter_call.
class FrameEngine::Call {
 public:
  explicit Call(FrameEngine& engine) : engine_(engine) { engine_.enter_call(); }
  ~Call() { engine_.leave_call(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  FrameEngine& engine_;
};

FrameEngine::FrameEngine(vk::Device* device, const DeviceRates& rates) : device_(device), jobs_(rates) {
  retry_frames_.reserve(16);
  work_.plan.steps.reserve(256);
  work_.plan.slices.reserve(64);
}

void FrameEngine::set_budget(const Budget& budget) {
  budget_ = budget;
  governor_.set(budget.preference, budget.frame_gpu_us);
}

// ---- checks ----

Result<> FrameEngine::check_alive(const char* call) const {
  if (!device_ || !device_->lost()) return {};
  return lost_device_error(call);
}

Result<> FrameEngine::check_running(const char* call) const {
  IMPRINT_CHECK(check_alive(call));
  if (!quiesced_) return {};
  return make_error(ErrorCode::wrong_state,
                    text(call, ": the context is quiesced. Call context_resume first."));
}

Result<> FrameEngine::check_closed(const char* call) const {
  IMPRINT_CHECK(check_running(call));
  return check_frame_closed(state_, call);
}

Result<> FrameEngine::check_open(const char* call) const {
  IMPRINT_CHECK(check_alive(call));
  return check_frame_open(state_, call);
}

// ---- the frame ----

Result<> FrameEngine::begin(const FrameInfo& info, Issuer& issuer) {
  IMPRINT_CHECK(check_closed("frame_begin"));
  if (frame_ && info.frame <= *frame_)
    return make_error(ErrorCode::invalid_argument, text("frame_begin: frame: found ", info.frame,
                                                        ", expected more than the last one, ", *frame_, "."));
  Call call(*this);
  call_ticks_ = 0;
  frame_start_ticks_ = call_start_;
  frame_start_ = std::chrono::steady_clock::now();
  frame_ = info.frame;
  state_ = FrameState::open;
  issuer.begin_frame(info);
  if (!issuer.traits().on_frame_thread) governor_.measured(info.host_gpu_us);
  counted_.learn_share = governor_.share();
  call_completed(issuer);
  const Result<> alive = check_alive("frame_begin");
  if (!alive) state_ = FrameState::closed;
  return alive;
}

void FrameEngine::call_completed(Issuer& issuer) {
  const vk::Ticket complete = issuer.completed(jobs_, counted_);
  jobs_.call_completed(complete);
}

Result<> FrameEngine::enqueue(FrameJob job) {
  if (!jobs_.calling_completed()) IMPRINT_CHECK(check_open("enqueue"));
  Call call(*this);
  return jobs_.add(std::move(job), frame_.value_or(0));
}

Result<> FrameEngine::enqueue(const Commands& commands, JobCompleted on_complete, const Issuer& issuer) {
  if (!jobs_.calling_completed()) IMPRINT_CHECK(check_open("enqueue"));
  Call call(*this);
  if (Result<> usable = issuer.check(commands); !usable)
    return make_error(usable.error().code, text("enqueue: ", usable.error().message));
  jobs_.add(commands, frame_.value_or(0), std::move(on_complete));
  return {};
}

Result<FrameEstimate> FrameEngine::estimate() {
  IMPRINT_CHECK(check_open("frame_estimate"));
  Call call(*this);
  return jobs_.estimate(*frame_);
}

// The time in this frame for learning that is not due. A budget that the caller gives for one frame is not
// governed.
float FrameEngine::take_budget(const Issuer& issuer, std::uint32_t budget_us) {
  const bool given = budget_us != kFromBudget;
  if (!given) budget_us = budget_.gpu_us_per_frame;
  if (issuer.traits().on_frame_thread && budget_.cpu_us_per_frame)
    budget_us = std::min(budget_us, budget_.cpu_us_per_frame);
  work_.budget_us =
      budget_us == kFromBudget ? std::numeric_limits<float>::infinity() : static_cast<float>(budget_us);
  if (given || governor_.share() >= 1) return work_.budget_us;
  return governor_.share() > 0 ? work_.budget_us * governor_.share() : 0.0f;
}

Result<std::uint32_t> FrameEngine::issue(Issuer& issuer, std::uint32_t budget_us, FrameState state,
                                         const EnqueueMore& more) {
  Call call(*this);
  float learn_budget_us = take_budget(issuer, budget_us);
  if (more) learn_budget_us = work_.budget_us = std::numeric_limits<float>::infinity();
  const Result<> issued = issue_all(issuer, learn_budget_us, static_cast<bool>(more), more);
  state_ = state;
  IMPRINT_CHECK(issued);
  return static_cast<std::uint32_t>(std::min(work_.plan.left_us, 4e9f));
}

Result<> FrameEngine::issue_everything(Issuer& issuer) {
  work_.budget_us = std::numeric_limits<float>::infinity();
  return issue_all(issuer, work_.budget_us, true);
}

// Each stage follows the one before. The frame stays open, so that more() can enqueue.
Result<> FrameEngine::issue_stages(Issuer& issuer, const EnqueueMore& more) {
  for (;;) {
    IMPRINT_CHECK(issue_work(issuer, frame_.value_or(0), work_.budget_us, true, false));
    IMPRINT_ASSIGN(const bool again, more());
    if (!again) return {};
  }
}

Result<> FrameEngine::issue_all(Issuer& issuer, float learn_budget_us, bool everything,
                                const EnqueueMore& more) {
  Result<> status;
  while (status && !retry_frames_.empty()) {
    status = issue_work(issuer, retry_frames_.front(), 0, false, false);
    if (status) retry_frames_.erase(retry_frames_.begin());
  }
  if (status && more) status = issue_stages(issuer, more);
  if (status) status = issue_work(issuer, frame_.value_or(0), learn_budget_us, everything, true);
  if (!status) retry_later();
  return status;
}

void FrameEngine::retry_later() {
  if (frame_ && (retry_frames_.empty() || retry_frames_.back() != *frame_)) retry_frames_.push_back(*frame_);
}

Result<> FrameEngine::issue_work(Issuer& issuer, std::uint64_t frame, float learn_budget_us, bool everything,
                                 bool closes_frame) {
  const bool on_frame_thread = issuer.traits().on_frame_thread;
  work_.frame = frame;
  work_.issued_frame = frame_.value_or(0);
  work_.closes_frame = closes_frame;
  work_.immediate_count = jobs_.count_immediate(frame);
  work_.immediate_us = 0;
  work_.first_slice_open = false;
  IMPRINT_CHECK(issuer.prepare(work_, jobs_, counted_));

  const std::uint64_t start = ticks();
  FrameRequest request;
  request.frame = frame;
  request.everything = everything;
  request.budget_us = learn_budget_us - work_.immediate_us;
  if (issuer.traits().cuts_slices) request.max_slice_us = static_cast<float>(budget_.max_slice_us);
  request.first_slice_open = work_.first_slice_open;
  request.first_slice_us = work_.immediate_us;
  if (!on_frame_thread) request.max_pieces = pieces_in_time();
  jobs_.schedule().plan(request, work_.plan);
  if (work_.plan.held_back) ++counted_.cpu_deferred_frames;
  Result<> issued = issuer.issue(work_, jobs_, counted_);
  jobs_.schedule().sweep();
  if (issued && !on_frame_thread) note_piece_time(start);
  return issued;
}

void FrameEngine::give_up_issue() {
  if (state_ == FrameState::open) state_ = FrameState::submitted;
}

Result<> FrameEngine::end() {
  const FrameState found = std::exchange(state_, FrameState::closed);
  IMPRINT_CHECK(check_alive("frame_end"));
  if (found == FrameState::closed) return check_frame_open(found, "frame_end");
  Call call(*this);
  ++counted_.frames;
  frame_ended_ = true;
  return {};
}

// ---- time and counts ----

void FrameEngine::enter_call() {
  if (call_depth_++ > 0) return;
  if (device_) device_->counters().enter_frame();
  call_start_ = ticks();
}

void FrameEngine::leave_call() {
  if (--call_depth_ > 0) return;
  if (device_) device_->counters().leave_frame();
  call_ticks_ += ticks() - call_start_;
  if (!std::exchange(frame_ended_, false)) return;
  counted_.frame_cpu_us = static_cast<float>(us_of(call_ticks_));
  if (budget_.cpu_us_per_frame && counted_.frame_cpu_us > static_cast<float>(budget_.cpu_us_per_frame))
    ++counted_.over_cpu_frames;
  publish_stats();
}

// Microseconds of this frame's ticks. The frame's own duration gives the length of a tick.
double FrameEngine::us_of(std::uint64_t call_ticks) const {
  const double frame_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - frame_start_).count();
  return static_cast<double>(call_ticks) * frame_us /
         static_cast<double>(std::max<std::uint64_t>(ticks() - frame_start_ticks_, 1));
}

// How many pieces the frame thread still has time to issue.
std::uint32_t FrameEngine::pieces_in_time() const {
  if (budget_.cpu_us_per_frame == 0) return std::numeric_limits<std::uint32_t>::max();
  const double left = budget_.cpu_us_per_frame - us_of(call_ticks_ + ticks() - call_start_);
  return static_cast<std::uint32_t>(std::clamp(left / piece_cpu_us_, 0.0, 1e6));
}

// start: ticks at which the plan was begun that has just been issued.
void FrameEngine::note_piece_time(std::uint64_t start) {
  if (budget_.cpu_us_per_frame == 0 || work_.plan.pieces == 0) return;
  piece_cpu_us_ += 0.1 * (us_of(ticks() - start) / work_.plan.pieces - piece_cpu_us_);
}

ContextStats FrameEngine::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return published_;
}

void FrameEngine::publish_stats() {
  const std::lock_guard lock(stats_mutex_);
  published_ = counted_;
}

}  // namespace imprint::bridge

#include <algorithm>
#include <limits>
#include <utility>

#include "engine-bridge/frame/context_impl.h"
#include "engine-bridge/frame/job_slot.h"
#include "engine-bridge/frame/ticks.h"

namespace imprint::bridge {

void ContextImpl::enter_frame_call() {
  if (call_depth_++ > 0) return;
  device_->counters().enter_frame();
  call_start_ = ticks();
}

void ContextImpl::leave_frame_call() {
  if (--call_depth_ > 0) return;
  device_->counters().leave_frame();
  call_ticks_ += ticks() - call_start_;
  if (!std::exchange(frame_ended_, false)) return;
  counted_.frame_cpu_us = static_cast<float>(us_of(call_ticks_));
  if (budget_.cpu_us_per_frame && counted_.frame_cpu_us > static_cast<float>(budget_.cpu_us_per_frame))
    ++counted_.over_cpu_frames;
  publish_stats();
}

// The frame itself tells how long a tick is.
double ContextImpl::us_of(std::uint64_t call_ticks) const {
  const double frame_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - frame_start_).count();
  return static_cast<double>(call_ticks) * frame_us /
         static_cast<double>(std::max<std::uint64_t>(ticks() - frame_start_ticks_, 1));
}

std::uint32_t ContextImpl::pieces_in_time() const {
  if (budget_.cpu_us_per_frame == 0) return std::numeric_limits<std::uint32_t>::max();
  const double left = budget_.cpu_us_per_frame - us_of(call_ticks_ + ticks() - call_start_);
  return static_cast<std::uint32_t>(std::clamp(left / piece_cpu_us_, 0.0, 1e6));
}

void ContextImpl::note_piece_time(std::uint64_t start) {
  if (budget_.cpu_us_per_frame == 0 || plan_.pieces == 0) return;
  piece_cpu_us_ += 0.1 * (us_of(ticks() - start) / plan_.pieces - piece_cpu_us_);
}

Status ContextImpl::check_can_issue(const char* call) const {
  IMPRINT_CHECK(check_alive(call));
  if (state_ == State::open) return {};
  const std::string where = std::string(call) + ": ";
  switch (state_) {
    case State::open:
      return {};
    case State::closed:
      return make_error(ErrorCode::wrong_state, where + "no frame is open: call frame_begin first");
    case State::submitted:
      return make_error(ErrorCode::wrong_state,
                        where + "this frame's jobs were already given to submit: call frame_end");
    case State::recorded:
      return make_error(ErrorCode::wrong_state,
                        where + "this frame's jobs were already given to record: call frame_end");
  }
  return {};
}

Status ContextImpl::frame_begin(const FrameInfo& info) {
  IMPRINT_CHECK(check_loud("frame_begin"));
  if (state_ != State::closed) {
    return make_error(ErrorCode::wrong_state, "frame_begin: frame " + std::to_string(*frame_) +
                                                  " is still open: call frame_end first");
  }
  if (frame_ && info.frame <= *frame_) {
    return make_error(ErrorCode::wrong_state, "frame_begin: frame " + std::to_string(info.frame) +
                                                  " does not follow frame " + std::to_string(*frame_) +
                                                  ": frame numbers rise");
  }
  FrameCall call(*this);
  call_ticks_ = 0;
  frame_start_ticks_ = call_start_;
  frame_start_ = std::chrono::steady_clock::now();
  frame_ = info.frame;
  state_ = State::open;
  in_flight_->frame(info.frame);
  if (info.safe_frame > 0) in_flight_->safe_frame(info.safe_frame);
  governor_.measured(info.host_gpu_us);
  counted_.learn_share = governor_.share();
  const vk::Ticket complete = device_->completion().poll();
  read_times(complete);
  device_->completion().collect();
  call_completed(complete);
  return check_alive("frame_begin");
}

void ContextImpl::read_times(vk::Ticket complete) {
  while (const auto times = timer_->read(complete)) {
    const Note& note = notes_[times->entry];
    const float learn_us = times->us[1] + times->us[2] + times->us[3];
    counted_.times = {note.frame, times->us[0], learn_us};
    if (times->us[0] + learn_us > note.budget_us) ++counted_.over_budget_frames;
    for (std::uint32_t section = 0; section < GpuTimer::kSections; ++section) {
      if (section == 0 && !note.immediate_is_known) continue;
      float predicted = 0;
      for (const Share& share : note.shares) predicted += share.section == section ? share.us : 0;
      for (const Share& share : note.shares) {
        if (share.section != section) continue;
        const auto known = known_.find(share.program);
        if (known != known_.end())
          known->second.cost.correct(predicted, times->us[section], share.us / predicted);
      }
    }
  }
}

void ContextImpl::call_completed(vk::Ticket complete) {
  in_completion_ = true;
  while (!issued_.empty() && issued_.front().ticket <= complete) {
    // Taken out first: the callback may enqueue and cancel.
    const Issued done = std::move(issued_.front());
    issued_.erase(issued_.begin());
    if (done.on_complete) done.on_complete(done.frame);
  }
  in_completion_ = false;
}

Status ContextImpl::enqueue(Job job) {
  if (!in_completion_) IMPRINT_CHECK(check_can_issue("enqueue"));
  FrameCall call(*this);
  if (!job.program) return make_error(ErrorCode::invalid_argument, "enqueue: the job has no program");
  Program& program = *job.program;
  IMPRINT_CHECK(check_slot(program, job.slot, issued_, learn_, immediate_));
  const ProgramCost& cost = cost_of(program);
  if (job.kind == JobKind::immediate) {
    IMPRINT_CHECK(check_not_begun(program, schedule_));
    immediate_.push_back({frame_.value_or(0), &program, job.slot, {}, std::move(job.on_complete)});
    return {};
  }
  IMPRINT_CHECK(schedule_learn_job(schedule_, job, next_id_, cost));
  learn_.push_back({next_id_++, &program, job.slot, std::move(job.on_complete)});
  return {};
}

Status ContextImpl::enqueue(const Commands& commands, std::function<void(std::uint64_t)> on_complete) {
  if (!in_completion_) IMPRINT_CHECK(check_can_issue("enqueue"));
  FrameCall call(*this);
  if (!commands.primary || !commands.secondary)
    return make_error(ErrorCode::invalid_argument, "enqueue: the commands are null");
  immediate_.push_back({frame_.value_or(0), nullptr, 0, commands, std::move(on_complete)});
  return {};
}

const ContextImpl::Learn& ContextImpl::learn_of(const LearnJob& job) const {
  return *std::ranges::find(learn_, job.id, &Learn::id);  // learn_ and the schedule hold the same jobs
}

// Called as late as possible, so that everything written to the state before is in.
Status ContextImpl::take_uploads() {
  if (runtime_->has_uploads()) {
    IMPRINT_ASSIGN(uploads_, runtime_->take_uploads());
  }
  return {};
}

void ContextImpl::plan(std::uint64_t frame, float learn_budget_us, float max_slice_us, bool everything) {
  const auto later =
      std::ranges::find_if(immediate_, [&](const Immediate& job) { return job.frame > frame; });
  immediate_count_ = static_cast<std::size_t>(later - immediate_.begin());
  immediate_us_ = 0;
  for (const Immediate& job : immediate_planned()) {
    if (job.program) immediate_us_ += cost_of(*job.program).range_us(0, job.program->piece_count());
  }
  FrameRequest request;
  request.frame = frame;
  request.everything = everything;
  request.budget_us = learn_budget_us - immediate_us_;
  request.max_slice_us = max_slice_us;
  request.first_slice_open = has_immediate_work();
  request.first_slice_us = immediate_us_;
  request.max_pieces = pieces_in_time();
  schedule_.plan(request, plan_);
  if (plan_.held_back) ++counted_.cpu_deferred_frames;

  timing_.reset();
  section_ = 0;
  if (plan_.slices.empty()) {
    if (border_->pending()) plan_.slices.push_back({});
    return;
  }
  timing_ = timer_->open();
  if (!timing_) {
    if (immediate_us_ + plan_.due_us + plan_.early_us > frame_budget_us_) ++counted_.over_budget_frames;
    return;
  }
  Note& note = notes_[*timing_];
  note.frame = request.frame;
  note.budget_us = frame_budget_us_;
  note.immediate_is_known = uploads_.primary == VK_NULL_HANDLE;
  note.shares.clear();
  for (const Immediate& job : immediate_planned()) {
    if (job.program) {
      note.shares.push_back({job.program, 0, cost_of(*job.program).range_us(0, job.program->piece_count())});
    } else {
      note.immediate_is_known = false;
    }
  }
}

void ContextImpl::assemble_step(const Step& step, bool after_barrier, VkCommandBufferLevel level) {
  const LearnJob& job = schedule_.jobs()[step.job];
  const Learn& learn = learn_of(job);
  if (step.begin == 0 && step.end == job.piece_count) {
    list_.push_back(learn.program->whole(learn.slot, level));  // begins with a barrier of its own
    return;
  }
  if (const VkCommandBuffer head = learn.program->head(learn.slot, level);
      head && step.begin == 0 && step.end == job.commit_piece) {
    list_.push_back(head);  // as well
    return;
  }
  if (!after_barrier) list_.push_back(runtime_->barrier().get(level));
  if (const VkCommandBuffer tail = learn.program->tail(learn.slot, level);
      tail && step.begin == job.commit_piece && step.end == job.piece_count) {
    list_.push_back(tail);
    return;
  }
  const std::span<const VkCommandBuffer> pieces =
      learn.program->pieces(learn.slot, level).subspan(step.begin, step.end - step.begin);
  list_.insert(list_.end(), pieces.begin(), pieces.end());
}

bool ContextImpl::assemble(std::size_t index, VkCommandBufferLevel level) {
  const bool last = index + 1 == plan_.slices.size();
  const bool immediate = index == 0 && has_immediate_work();
  const Slice& slice = plan_.slices[index];
  const auto steps = std::span(plan_.steps).subspan(slice.first_step, slice.step_count);
  if (immediate) {
    list_.push_back(timing_ ? timer_->begin(*timing_, 0, level) : runtime_->barrier().get(level));
    if (uploads_.primary) list_.push_back(uploads_.get(level));
    for (const Immediate& job : immediate_planned()) {
      if (job.program) {
        list_.push_back(job.program->whole(job.slot, level));
      } else {
        list_.push_back(runtime_->barrier().get(level));
        list_.push_back(job.commands.get(level));
      }
    }
    if (timing_ && steps.empty())
      list_.push_back(last ? timer_->finish(*timing_, 0, level) : timer_->end(*timing_, 0, level));
  }
  if (!steps.empty()) {
    const bool timed_on =
        section_ == GpuTimer::kSections - 1;  // the last section takes all the slices that are left
    if (timing_ && !timed_on) {
      ++section_;
      list_.push_back(immediate ? timer_->turn(*timing_, section_, level)
                                : timer_->begin(*timing_, section_, level));
    } else {
      list_.push_back(runtime_->barrier().get(level));
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      assemble_step(steps[i], i == 0, level);
      if (timing_) {
        const LearnJob& job = schedule_.jobs()[steps[i].job];
        notes_[*timing_].shares.push_back(
            {reinterpret_cast<const Program*>(job.program), section_, steps[i].us});
      }
    }
    if (timing_ && (last || section_ < GpuTimer::kSections - 1))
      list_.push_back(last ? timer_->finish(*timing_, section_, level)
                           : timer_->end(*timing_, section_, level));
  }
  return timing_ && last;
}

const char* ContextImpl::slice_label(std::size_t index) const {
  const bool learns = plan_.slices[index].step_count > 0;
  if (index == 0 && has_immediate_work())
    return learns ? "imprint inference and learning" : "imprint inference";
  return learns ? "imprint learning" : "imprint";
}

void ContextImpl::issued(std::size_t index, vk::Ticket ticket) {
  const std::uint64_t frame = frame_.value_or(0);
  if (index == 0) {
    for (Immediate& job : immediate_planned()) {
      issued_.push_back(
          {ticket, frame, job.program, job.commands.primary, job.slot, std::move(job.on_complete)});
    }
    immediate_.erase(immediate_.begin(), immediate_.begin() + static_cast<std::ptrdiff_t>(immediate_count_));
    immediate_count_ = 0;
    uploads_ = {};
  }
  const Slice& slice = plan_.slices[index];
  schedule_.issued(plan_, slice);
  if (slice.step_count > 0) ++counted_.slices;
  for (std::uint32_t i = 0; i < slice.step_count; ++i) {
    const Step& step = plan_.steps[slice.first_step + i];
    const LearnJob& job = schedule_.jobs()[step.job];
    if (!job.finished()) continue;
    const auto learn = std::ranges::find(learn_, job.id, &Learn::id);
    issued_.push_back(
        {ticket, frame, learn->program, VK_NULL_HANDLE, learn->slot, std::move(learn->on_complete)});
    learn_.erase(learn);
  }
}

void ContextImpl::finish_issue(vk::Ticket ticket) {
  schedule_.sweep();
  if (timing_) timer_->close(*timing_, ticket);
  timing_.reset();
}

Status ContextImpl::submit_planned(bool closes) {
  vk::Ticket ticket;
  Status status;
  for (std::size_t i = 0; i < plan_.slices.size(); ++i) {
    list_.clear();
    const std::uint32_t timed = section_;
    const bool ends = i + 1 == plan_.slices.size(), last = closes && ends;
    if (i == 0) border_->open(list_, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    const bool finished = assemble(i, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    if (ends) border_->close(list_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, finished, last);
    Result<vk::Ticket> submitted =
        queue_->submit(list_, border_->waits(), last ? border_->signals() : std::span<const HostSemaphore>(),
                       slice_label(i));
    if (!submitted) {
      status = std::move(submitted).error();
      // Nothing of this slice happened. The section that spans slices, if it was open, has no end either.
      if (timing_) timer_->forget(*timing_, i == 0 ? 0 : std::min(timed + 1, GpuTimer::kSections - 1));
      runtime_->put_back_uploads(std::exchange(uploads_, {}));
      break;
    }
    ticket = *submitted;
    ++counted_.submits;
    border_->opened(true);
    if (last) border_->closed(true);
    issued(i, ticket);
  }
  finish_issue(ticket);
  return status;
}

void ContextImpl::owe_frame() {
  if (frame_ && (owed_.empty() || owed_.back() != *frame_)) owed_.push_back(*frame_);
}

Status ContextImpl::submit_all(float learn_budget_us, bool everything) {
  const auto give = [&](std::uint64_t frame, float us, bool all, bool closes) -> Status {
    IMPRINT_CHECK(take_uploads());
    const std::uint64_t start = ticks();
    plan(frame, us, static_cast<float>(budget_.max_slice_us), all);
    IMPRINT_CHECK(submit_planned(closes));
    note_piece_time(start);
    return {};
  };
  Status status;
  while (!owed_.empty()) {
    status = give(owed_.front(), 0, false, false);
    if (!status) break;
    owed_.erase(owed_.begin());
  }
  if (status) status = give(frame_.value_or(0), learn_budget_us, everything, true);
  if (!status) owe_frame();
  return status;
}

// What learning that is not due may take in this frame. A budget of the caller's own for this one frame is
// the caller's own decision.
float ContextImpl::take_budget(std::uint32_t budget_us) {
  const bool own = budget_us != kFromBudget;
  if (!own) budget_us = budget_.gpu_us_per_frame;
  frame_budget_us_ =
      budget_us == kFromBudget ? std::numeric_limits<float>::infinity() : static_cast<float>(budget_us);
  if (own || governor_.share() >= 1) return frame_budget_us_;
  return governor_.share() > 0 ? frame_budget_us_ * governor_.share() : 0.0f;
}

Status ContextImpl::acquire(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(check_can_issue("acquire"));
  return border_->acquire(buffer);
}

Status ContextImpl::release(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(check_can_issue("release"));
  return border_->release(buffer);
}

Status ContextImpl::submit(const SubmitInfo& info) {
  IMPRINT_CHECK(check_can_issue("submit"));
  if (!queue_)
    return make_error(ErrorCode::wrong_state,
                      "submit: the context is record only, as no queue was given at adoption: use record");
  FrameCall call(*this);
  IMPRINT_CHECK(border_->expect(info.waits, info.signals));
  const float learn_budget = take_budget(info.budget_us);
  state_ = State::submitted;
  return submit_all(learn_budget, false);
}

Result<FrameEstimate> ContextImpl::estimate() {
  IMPRINT_CHECK(check_can_issue("estimate"));
  FrameCall call(*this);
  const FrameSchedule::Left left = schedule_.left(*frame_);
  FrameEstimate estimate{left.due_us, left.later_us};
  for (const Immediate& job : immediate_) {
    if (job.program) estimate.due_us += cost_of(*job.program).range_us(0, job.program->piece_count());
  }
  return estimate;
}

Result<std::uint32_t> ContextImpl::record(VkCommandBuffer command_buffer, std::uint32_t budget_us) {
  IMPRINT_CHECK(check_can_issue("record"));
  if (exclusive_)
    return make_error(ErrorCode::unsupported,
                      "record: the context has a queue of its own, and nothing orders that with the host's "
                      "command buffers: submit");
  if (!command_buffer) return make_error(ErrorCode::invalid_argument, "record: the command buffer is null");
  FrameCall call(*this);
  const float learn_budget = take_budget(budget_us);
  state_ = State::recorded;
  if (Status taken = take_uploads(); !taken) {
    owe_frame();
    return std::move(taken).error();
  }
  for (const std::uint64_t frame : owed_) {
    plan(frame, 0, 0, false);
    record_planned(command_buffer, false);
  }
  owed_.clear();
  const std::uint64_t start = ticks();
  plan(*frame_, learn_budget, 0, false);
  const auto left = static_cast<std::uint32_t>(std::min(plan_.left_us, 4e9f));
  record_planned(command_buffer, true);
  note_piece_time(start);
  return left;
}

// One slice: in a command buffer there is nothing to cut. It begins with the entry barrier, as every slice
// does.
void ContextImpl::record_planned(VkCommandBuffer command_buffer, bool closes) {
  if (plan_.slices.empty()) return;
  list_.clear();
  border_->open(list_, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
  const bool finished = assemble(0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
  border_->close(list_, VK_COMMAND_BUFFER_LEVEL_SECONDARY, finished, closes);
  const vk::Functions& f = device_->functions();
  const vk::CommandLabel label(f, command_buffer, slice_label(0));
  f.vkCmdExecuteCommands(command_buffer, static_cast<std::uint32_t>(list_.size()), list_.data());
  border_->opened(false);
  if (closes) border_->closed(false);
  const vk::Ticket ticket = device_->completion().next();
  in_flight_->recorded(ticket, *frame_);
  issued(0, ticket);
  finish_issue(ticket);
}

Status ContextImpl::frame_end() {
  IMPRINT_CHECK(check_alive("frame_end"));
  if (state_ == State::closed)
    return make_error(ErrorCode::wrong_state, "frame_end: no frame is open: call frame_begin first");
  FrameCall call(*this);
  state_ = State::closed;
  ++counted_.frames;
  frame_ended_ = true;
  return {};
}

}  // namespace imprint::bridge

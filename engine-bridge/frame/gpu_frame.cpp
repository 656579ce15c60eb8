#include "engine-bridge/frame/gpu_frame.h"

#include <algorithm>
#include <utility>

namespace imprint::bridge {

Result<std::unique_ptr<GpuFrame>> GpuFrame::create(vk::Device& device, Runtime& runtime, bool exclusive) {
  std::unique_ptr<GpuFrame> frame(new GpuFrame(runtime));
  IMPRINT_ASSIGN(frame->timer_, GpuTimer::create(device));
  IMPRINT_ASSIGN(frame->commands_, CommandSet::create(device));
  IMPRINT_ASSIGN(frame->sync_, FrameSync::create(device, *frame->commands_, exclusive));
  frame->list_.reserve(512);
  for (TimedFrame& timed : frame->timed_) timed.shares.reserve(64);
  return frame;
}

Result<> GpuFrame::share(const std::shared_ptr<SharedBuffer>& buffer) {
  IMPRINT_CHECK(sync_->add(buffer));
  return timer_->set_host_use(sync_->host_use());
}

Result<> GpuFrame::prepare(FrameWork& work, FrameJobs& jobs) {
  if (runtime_.has_uploads()) {
    IMPRINT_ASSIGN(uploads_, runtime_.take_uploads());
  }
  work.immediate_us = jobs.immediate_us(work.immediate_count);
  work.first_slice_open = has_immediate_work(work);
  return {};
}

void GpuFrame::start_timing(FrameWork& work, FrameJobs& jobs, ContextStats& stats) {
  timing_.reset();
  section_ = 0;
  FramePlan& plan = work.plan;
  if (plan.slices.empty()) {
    if (sync_->pending()) plan.slices.push_back({});  // semaphores and owners change without work too
    return;
  }
  timing_ = timer_->open();
  if (!timing_) {
    if (work.immediate_us + plan.due_us + plan.early_us > work.budget_us) ++stats.over_budget_frames;
    return;
  }
  TimedFrame& timed = timed_[*timing_];
  timed.frame = work.frame;
  timed.budget_us = work.budget_us;
  timed.immediate_is_known = uploads_.primary == VK_NULL_HANDLE;
  timed.shares.clear();
  for (const ImmediateJob& job : jobs.immediate(work.immediate_count)) {
    if (job.program)
      timed.shares.push_back({job.program, 0, jobs.program_us(*job.program)});
    else
      timed.immediate_is_known = false;
  }
}

std::span<const VkCommandBuffer> GpuFrame::assemble(const FrameWork& work, FrameJobs& jobs, std::size_t index,
                                                    VkCommandBufferLevel level) {
  const Slice& slice = work.plan.slices[index];
  const bool last = index + 1 == work.plan.slices.size();
  const bool immediate = index == 0 && has_immediate_work(work);
  list_.clear();
  section_before_ = section_;
  if (index == 0) sync_->add_entry(list_, level);
  if (immediate) add_immediate(work, jobs, slice.step_count == 0, last, level);
  if (slice.step_count > 0) add_steps(work, jobs, slice, immediate, last, level);
  // The timer's finish contains the exit barrier.
  if (last) sync_->add_exit(list_, level, timing_.has_value(), closes_frame(work, index));
  return list_;
}

void GpuFrame::add_immediate(const FrameWork& work, FrameJobs& jobs, bool whole_slice, bool last,
                             VkCommandBufferLevel level) {
  list_.push_back(timing_ ? timer_->begin(*timing_, 0, level) : runtime_.barrier().get(level));
  if (uploads_.primary) list_.push_back(uploads_.get(level));
  for (const ImmediateJob& job : jobs.immediate(work.immediate_count)) {
    if (job.program) {
      list_.push_back(job.program->whole(job.slot, level));
    } else {
      list_.push_back(runtime_.barrier().get(level));
      list_.push_back(job.commands.get(level));
    }
  }
  if (timing_ && whole_slice)
    list_.push_back(last ? timer_->finish(*timing_, 0, level) : timer_->end(*timing_, 0, level));
}

void GpuFrame::add_steps(const FrameWork& work, FrameJobs& jobs, const Slice& slice, bool after_immediate,
                         bool last, VkCommandBufferLevel level) {
  // The last section times all slices that are left.
  const bool section_continues = section_ == GpuTimer::kSections - 1;
  if (timing_ && !section_continues) {
    ++section_;
    list_.push_back(after_immediate ? timer_->next_section(*timing_, section_, level)
                                    : timer_->begin(*timing_, section_, level));
  } else {
    list_.push_back(runtime_.barrier().get(level));
  }
  for (std::uint32_t i = 0; i < slice.step_count; ++i) {
    const Step& step = work.plan.steps[slice.first_step + i];
    add_step(step, jobs, i == 0, level);
    if (timing_)
      timed_[*timing_].shares.push_back(
          {reinterpret_cast<const Program*>(jobs.learn_job(step).program), section_, step.us});
  }
  if (timing_ && (last || section_ < GpuTimer::kSections - 1))
    list_.push_back(last ? timer_->finish(*timing_, section_, level)
                         : timer_->end(*timing_, section_, level));
}

// Uses the longest command buffer that covers the step. A program's whole and head begin with a barrier.
void GpuFrame::add_step(const Step& step, FrameJobs& jobs, bool after_barrier, VkCommandBufferLevel level) {
  const LearnJob& job = jobs.learn_job(step);
  const LearnRun& learn = jobs.learn_run(step);
  if (learn.program->adds_up()) return;  // SubmitIssuer runs it
  if (step.begin == 0 && step.end == job.piece_count) {
    list_.push_back(learn.program->whole(learn.slot, level));
    return;
  }
  if (const VkCommandBuffer head = learn.program->head(learn.slot, level);
      head && step.begin == 0 && step.end == job.commit_piece) {
    list_.push_back(head);
    return;
  }
  if (!after_barrier) list_.push_back(runtime_.barrier().get(level));
  if (const VkCommandBuffer tail = learn.program->tail(learn.slot, level);
      tail && step.begin == job.commit_piece && step.end == job.piece_count) {
    list_.push_back(tail);
    return;
  }
  const std::span<const VkCommandBuffer> pieces =
      learn.program->pieces(learn.slot, level).subspan(step.begin, step.end - step.begin);
  list_.insert(list_.end(), pieces.begin(), pieces.end());
}

const char* GpuFrame::label(const FrameWork& work, std::size_t index) const {
  const bool learns = work.plan.slices[index].step_count > 0;
  if (index == 0 && has_immediate_work(work))
    return learns ? "imprint inference and learning" : "imprint inference";
  return learns ? "imprint learning" : "imprint";
}

void GpuFrame::issued(FrameWork& work, FrameJobs& jobs, std::size_t index, vk::Ticket ticket, bool submitted,
                      ContextStats& stats) {
  sync_->entry_issued(submitted);
  if (closes_frame(work, index)) sync_->exit_issued(submitted);
  if (index == 0) {
    jobs.immediate_issued(work.immediate_count, ticket, work.issued_frame);
    work.immediate_count = 0;
    uploads_ = {};
  }
  const Slice& slice = work.plan.slices[index];
  jobs.slice_issued(work.plan, slice, ticket, work.issued_frame);
  if (slice.step_count > 0) ++stats.slices;
}

void GpuFrame::refused(std::size_t index) {
  // A section that spans slices was begun by an earlier one and now has no end either.
  if (timing_)
    timer_->forget(*timing_, index == 0 ? 0 : std::min(section_before_ + 1, GpuTimer::kSections - 1));
  runtime_.put_back_uploads(std::exchange(uploads_, {}));
}

void GpuFrame::stop_timing(vk::Ticket ticket) {
  if (timing_) timer_->close(*timing_, ticket);
  timing_.reset();
}

void GpuFrame::read_times(vk::Ticket complete, FrameJobs& jobs, ContextStats& stats) {
  while (const auto times = timer_->read(complete)) {
    const TimedFrame& timed = timed_[times->entry];
    const float learn_us = times->us[1] + times->us[2] + times->us[3];
    stats.times = {timed.frame, times->us[0], learn_us};
    stats.immediate_us += static_cast<double>(times->us[0]);
    stats.learn_us += static_cast<double>(learn_us);
    if (times->us[0] + learn_us > timed.budget_us) ++stats.over_budget_frames;
    for (std::uint32_t section = 0; section < GpuTimer::kSections; ++section) {
      if (section == 0 && !timed.immediate_is_known) continue;
      float predicted = 0;
      for (const Share& share : timed.shares) predicted += share.section == section ? share.us : 0;
      for (const Share& share : timed.shares) {
        if (share.section != section) continue;
        if (ProgramCost* cost = jobs.known_cost(share.program))
          cost->correct(predicted, times->us[section], share.us / predicted);
      }
    }
  }
}

}  // namespace imprint::bridge

#include "engine-bridge/frame/frame_schedule.h"

#include <algorithm>
#include <limits>

#include "compute/base/text.h"

namespace imprint::bridge {
namespace {

constexpr float kUnlimited = std::numeric_limits<float>::infinity();

// Appends steps to a plan, opening a slice whenever the current one would become too long.
class Packer {
 public:
  Packer(FramePlan& plan, const FrameRequest& request)
      : plan_(plan), max_us_(request.max_slice_us > 0 ? request.max_slice_us : kUnlimited) {
    if (request.first_slice_open) {
      plan_.slices.push_back({0, 0, 0});
      used_us_ = request.first_slice_us;
    }
  }

  void add(const LearnJob& job, std::uint32_t index, std::uint32_t begin, std::uint32_t end) {
    while (begin < end) {
      std::uint32_t count = job.cost->fit(begin, end, max_us_ - used_us_);
      if (count == 0) {
        const bool fresh = !plan_.slices.empty() && plan_.slices.back().step_count == 0 && used_us_ == 0;
        if (!fresh) {
          plan_.slices.push_back({static_cast<std::uint32_t>(plan_.steps.size()), 0, 0});
          used_us_ = 0;
          continue;
        }
        count = 1;  // a piece longer than a slice cannot be cut
      }
      if (plan_.slices.empty())
        plan_.slices.push_back({static_cast<std::uint32_t>(plan_.steps.size()), 0, 0});
      const float us = job.cost->range_us(begin, begin + count);
      plan_.steps.push_back({index, begin, begin + count, us});
      ++plan_.slices.back().step_count;
      plan_.slices.back().us += us;
      used_us_ += us;
      begin += count;
    }
  }

 private:
  FramePlan& plan_;
  float max_us_;
  float used_us_ = 0;
};

}  // namespace

Result<> FrameSchedule::add(const LearnJob& job) {
  for (const LearnJob& earlier : jobs_) {
    if (earlier.deadline_frame <= job.deadline_frame) continue;
    const bool same_program = earlier.program == job.program;
    if (!same_program && earlier.stream != job.stream) continue;
    return make_error(ErrorCode::invalid_argument,
                      text("deadline_frame: found ", job.deadline_frame, ", expected at least ",
                           earlier.deadline_frame, ", that of an unfinished learn job of the same ",
                           same_program ? "program. Raise it." : "stream. Raise it, or use another stream."));
  }
  jobs_.push_back(job);
  return {};
}

bool FrameSchedule::waits_for_earlier(std::size_t job, const FramePlan& plan) const {
  for (std::size_t earlier = 0; earlier < job; ++earlier) {
    if (jobs_[earlier].program != jobs_[job].program && jobs_[earlier].stream != jobs_[job].stream) continue;
    const auto ends_it = [&](const Step& step) {
      return step.job == earlier && step.end == jobs_[earlier].piece_count;
    };
    if (!jobs_[earlier].finished() && std::ranges::none_of(plan.steps, ends_it)) return true;
  }
  return false;
}

void FrameSchedule::plan(const FrameRequest& request, FramePlan& plan) {
  plan.steps.clear();
  plan.slices.clear();
  plan.due_us = plan.early_us = plan.left_us = 0;
  plan.pieces = 0;
  plan.held_back = false;
  Packer packer(plan, request);
  const auto is_due = [&](const LearnJob& job) {
    return request.everything || job.deadline_frame <= request.frame;
  };

  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const LearnJob& job = jobs_[i];
    if (job.finished() || !is_due(job)) continue;
    packer.add(job, i, job.cursor, job.piece_count);
    plan.due_us += job.cost->range_us(job.cursor, job.piece_count);
    plan.pieces += job.piece_count - job.cursor;
  }

  const float granted = std::max(0.0f, request.budget_us - plan.due_us);
  float left = granted > 0 ? granted + saved_us_ : 0;
  if (granted > 0) saved_us_ = 0;
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const LearnJob& job = jobs_[i];
    if (job.finished() || is_due(job)) continue;
    std::uint32_t next = job.cursor;
    if (left > 0 && next < job.commit_piece && !waits_for_earlier(i, plan)) {
      const std::uint32_t fitting = job.cost->fit(next, job.commit_piece, left);
      const std::uint32_t count =
          std::min(fitting, request.max_pieces - std::min(plan.pieces, request.max_pieces));
      plan.held_back |= count < fitting;
      plan.pieces += count;
      packer.add(job, i, next, next + count);
      const float us = job.cost->range_us(next, next + count);
      plan.early_us += us;
      next += count;
      left -= us;
      if (next < job.commit_piece) {
        // Keeps the order of jobs: a smaller piece of a later job does not overtake.
        const float wanted = job.cost->range_us(next, next + 1);
        if (wanted > request.budget_us) saved_us_ = std::min(left, wanted);
        left = 0;
      }
    }
    plan.left_us += job.cost->range_us(next, job.piece_count);
  }
}

FrameSchedule::Left FrameSchedule::left(std::uint64_t frame) const {
  Left left;
  for (const LearnJob& job : jobs_)
    (job.deadline_frame <= frame ? left.due_us : left.later_us) +=
        job.cost->range_us(job.cursor, job.piece_count);
  return left;
}

void FrameSchedule::issued(const FramePlan& plan, const Slice& slice) {
  for (std::uint32_t i = 0; i < slice.step_count; ++i) {
    const Step& step = plan.steps[slice.first_step + i];
    jobs_[step.job].cursor = step.end;
  }
}

void FrameSchedule::sweep() {
  std::erase_if(jobs_, [](const LearnJob& job) { return job.finished(); });
}

void FrameSchedule::cancel(std::uintptr_t program) {
  std::erase_if(jobs_, [&](const LearnJob& job) { return job.program == program; });
}

}  // namespace imprint::bridge

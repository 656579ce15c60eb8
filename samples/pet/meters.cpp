#include "samples/pet/meters.h"

namespace pet {
namespace {

constexpr double kRateSeconds = 3.0;

void smooth(float& value, float sample) { value += (sample - value) * 0.05f; }

}  // namespace

void Meters::read(const imp_context_stats& stats) {
  context_ = stats;
  cpu_us_.push_back(stats.frame_cpu_us);
  smooth(smooth_cpu_us_, stats.frame_cpu_us);
  if (stats.measured_frame == measured_frame_) return;
  measured_frame_ = stats.measured_frame;
  if (stats.infer_gpu_us > 0.0f) infer_us_.push_back(stats.infer_gpu_us);
  if (stats.learn_gpu_us > 0.0f) learn_us_.push_back(stats.learn_gpu_us);
  gpu_us_.push_back(stats.infer_gpu_us + stats.learn_gpu_us);
  smooth(smooth_infer_us_, stats.infer_gpu_us);
  smooth(smooth_learn_us_, stats.learn_gpu_us);
}

void Meters::read(const imp_brain_stats& stats, double time_s) {
  brain_ = stats;
  counts_.push_back({time_s, stats.minibatches});
  while (counts_.size() > 2 && counts_.front().time_s < time_s - kRateSeconds) counts_.pop_front();
}

void Meters::show(OverlayState& overlay) const {
  overlay.infer_gpu_us = smooth_infer_us_;
  overlay.learn_gpu_us = smooth_learn_us_;
  overlay.frame_cpu_us = smooth_cpu_us_;
  overlay.over_budget_frames = context_.over_budget_frames;
  overlay.minibatches = brain_.minibatches;
  const double seconds = counts_.empty() ? 0.0 : counts_.back().time_s - counts_.front().time_s;
  overlay.updates_per_second =
      seconds > 0.0
          ? static_cast<float>(static_cast<double>(counts_.back().minibatches - counts_.front().minibatches) /
                               seconds)
          : 0.0f;
}

void Meters::fill(Report& report) const {
  report.decisions = brain_.decisions;
  report.feedbacks = brain_.feedbacks;
  report.demonstrations = brain_.demonstrations;
  report.minibatches = brain_.minibatches;
  report.infer_dispatches = brain_.infer_dispatches;
  report.learn_dispatches = brain_.learn_dispatches;
  report.late_actions = brain_.late_actions;
  report.infer_gpu_us = spread(infer_us_);
  report.learn_gpu_us = spread(learn_us_);
  report.gpu_us = spread(gpu_us_);
  report.frame_cpu_us = spread(cpu_us_);
  report.slices = context_.slices;
  report.over_budget_frames = context_.over_budget_frames;
  report.frame_thread_compiles = context_.frame_compiles;
  report.frame_thread_allocations = context_.frame_allocations;
  report.frame_thread_waits = context_.frame_waits;
}

}  // namespace pet

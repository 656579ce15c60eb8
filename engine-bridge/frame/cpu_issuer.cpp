#include "engine-bridge/frame/cpu_issuer.h"

#include <algorithm>
#include <limits>

#include "compute/base/text.h"
#include "compute/cpu/kernels.h"

namespace imprint::bridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMeasuredRuns = 3;         // the first one fills the caches
constexpr float kLongRunUs = 20 * 1000;  // of a run so long the caches are a small part: it is not repeated

float us_since(Clock::time_point start) {
  return std::chrono::duration<float, std::micro>(Clock::now() - start).count();
}

}  // namespace

std::string cpu_report() {
  return text("device: the CPU, ", cpu::kernels().name, " kernels on the frame thread, no Vulkan\n",
              "completion: when frame_submit returns\n", "time: measured\n");
}

Result<> CpuIssuer::check(const Commands& commands) const {
  if (commands.work) return {};
  return make_error(ErrorCode::invalid_argument, "commands: found none for the CPU, expected its work.");
}

// Measures immediate jobs by running them, so that learning gets what they leave of the budget.
Result<> CpuIssuer::prepare(FrameWork& work, FrameJobs& jobs, ContextStats& stats) {
  ++ticket_.value;
  ++stats.submits;
  stats.times = {work.issued_frame, 0, 0};
  start_ = Clock::now();
  if (work.immediate_count == 0) return {};
  for (const ImmediateJob& job : jobs.immediate(work.immediate_count)) {
    if (job.program)
      (void)job.program->run_pieces(job.slot, 0, job.program->piece_count());  // enqueue checked the slot
    else
      job.commands.work->run();
  }
  jobs.immediate_issued(work.immediate_count, ticket_, work.issued_frame);
  work.immediate_count = 0;
  work.immediate_us = stats.times.immediate_us = us_since(start_);
  stats.immediate_us += static_cast<double>(work.immediate_us);
  return {};
}

Result<> CpuIssuer::issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) {
  const FramePlan& plan = work.plan;
  for (const Slice& slice : plan.slices) {
    for (std::uint32_t i = 0; i < slice.step_count; ++i)
      run_step(plan.steps[slice.first_step + i], jobs, stats);
    jobs.slice_issued(plan, slice, ticket_, work.issued_frame);
    if (slice.step_count > 0) ++stats.slices;
  }
  if (us_since(start_) > work.budget_us) ++stats.over_budget_frames;
  return {};
}

void CpuIssuer::run_step(const Step& step, FrameJobs& jobs, ContextStats& stats) {
  const LearnRun& learn = jobs.learn_run(step);
  const Clock::time_point start = Clock::now();
  (void)learn.program->run_pieces(learn.slot, step.begin, step.end - step.begin);
  const float us = us_since(start);
  jobs.cost_of(*learn.program).correct(step.us, us, 1);
  stats.times.learn_us += us;
  stats.learn_us += static_cast<double>(us);
}

Result<> CpuIssuer::run_now(const Commands& commands) {
  IMPRINT_CHECK(check(commands));
  commands.work->run();
  return {};
}

Result<> CpuIssuer::run_now(Program& program) { return program.run_pieces(0, 0, program.piece_count()); }

Result<std::vector<float>> CpuIssuer::measure(Program& program) {
  const std::uint32_t pure = std::min(program.first_state_write(), program.piece_count());
  std::vector<float> us(pure, std::numeric_limits<float>::max());
  const Clock::time_point begin = Clock::now();
  for (int run = 0; run < kMeasuredRuns && (run == 0 || us_since(begin) < kLongRunUs); ++run)
    for (std::uint32_t piece = 0; piece < pure; ++piece) {
      const Clock::time_point start = Clock::now();
      IMPRINT_CHECK(program.run_pieces(0, piece, 1));
      us[piece] = std::min(us[piece], us_since(start));
    }
  return us;
}

}  // namespace imprint::bridge

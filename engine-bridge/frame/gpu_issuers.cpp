#include "engine-bridge/frame/gpu_issuers.h"

#include <utility>

#include "compute/base/text.h"
#include "compute/program/run.h"
#include "engine-bridge/frame/measure_pieces.h"

namespace imprint::bridge {
namespace {

constexpr std::uint64_t kRunNowTimeoutNs = 60ull * 1000 * 1000 * 1000;

Error cannot_wait(const char* call) {
  return make_error(
      ErrorCode::unsupported,
      text(call, ": only safe frames tell this context what is complete, so it cannot wait for ",
           "the GPU. Give it a queue that takes a fence, or run frames."));
}

}  // namespace

void GpuIssuer::begin_frame(const FrameInfo& info) {
  in_flight_.begin_frame(info.frame);
  if (info.safe_frame > 0) in_flight_.set_safe_frame(info.safe_frame);
}

Result<> GpuIssuer::prepare(FrameWork& work, FrameJobs& jobs, ContextStats&) {
  return frame_.prepare(work, jobs);
}

vk::Ticket GpuIssuer::completed(FrameJobs& jobs, ContextStats& stats) {
  const vk::Ticket complete = device_.completion().poll();
  frame_.read_times(complete, jobs, stats);
  device_.completion().collect();
  return complete;
}

Result<> GpuIssuer::check(const Commands& commands) const {
  if (commands.primary && commands.secondary) return {};
  return make_error(ErrorCode::invalid_argument, "commands: found null, expected command buffers.");
}

Result<> GpuIssuer::wait(std::uint64_t) { return cannot_wait("wait"); }
Result<> GpuIssuer::run_now(const Commands&) { return cannot_wait("run_now"); }
Result<> GpuIssuer::run_now(Program& program) {
  return run_now(Commands{program.whole(0, VK_COMMAND_BUFFER_LEVEL_PRIMARY), VK_NULL_HANDLE});
}
Result<std::vector<float>> GpuIssuer::measure(Program&) { return std::vector<float>(); }

Result<> SubmitIssuer::issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) {
  frame_.start_timing(work, jobs, stats);
  FrameSync& sync = frame_.sync();
  vk::Ticket ticket;
  Result<> status;
  for (std::size_t i = 0; i < work.plan.slices.size(); ++i) {
    const bool last = work.closes_frame && i + 1 == work.plan.slices.size();
    const auto list = frame_.assemble(work, jobs, i, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    Result<vk::Ticket> submitted =
        queue_.submit(list, sync.waits(), last ? sync.completions() : std::span<const HostSemaphore>(),
                      frame_.label(work, i));
    if (!submitted) {
      status = std::move(submitted).error();
      frame_.refused(i);
      break;
    }
    ticket = *submitted;
    ++stats.submits;
    status = add_up(work, jobs, i, ticket);
    frame_.issued(work, jobs, i, ticket, true, stats);
    if (!status) break;
  }
  frame_.stop_timing(ticket);
  return status;
}

// Programs that add numbers up over processes run whole, after the slice that has their last piece. Blocks.
Result<> SubmitIssuer::add_up(const FrameWork& work, FrameJobs& jobs, std::size_t index, vk::Ticket& ticket) {
  const Slice& slice = work.plan.slices[index];
  for (std::uint32_t i = 0; i < slice.step_count; ++i) {
    const Step& step = work.plan.steps[slice.first_step + i];
    const LearnRun& learn = jobs.learn_run(step);
    if (!learn.program->adds_up() || step.end != jobs.learn_job(step).piece_count) continue;
    if (queue_.completes_by_frames()) return cannot_wait("sums over processes");
    IMPRINT_ASSIGN(ticket, run_adding_up(*learn.program, learn.slot, queue_));
  }
  return {};
}

Result<> SubmitIssuer::wait(std::uint64_t timeout_ns) {
  if (queue_.completes_by_frames()) return cannot_wait("wait");
  return in_flight_.wait(device_.last_ticket(), timeout_ns);
}

Result<> SubmitIssuer::run_now(const Commands& commands) {
  if (queue_.completes_by_frames()) return cannot_wait("run_now");
  Runtime& runtime = frame_.runtime();
  std::vector<VkCommandBuffer> list;
  IMPRINT_ASSIGN(const Commands uploads, program::stream_uploads(runtime, queue_));
  if (uploads.primary) list.push_back(uploads.primary);
  list.push_back(runtime.barrier().primary);
  list.push_back(commands.primary);
  if (VkCommandBuffer times = frame_.timing_rehearsal()) list.push_back(times);
  const Result<vk::Ticket> ticket = queue_.submit(list);
  if (!ticket) {
    runtime.put_back_uploads(uploads);
    return ticket.error();
  }
  return queue_.wait(*ticket, kRunNowTimeoutNs);
}

Result<> SubmitIssuer::submit_uploads() {
  Runtime& runtime = frame_.runtime();
  if (!runtime.has_uploads()) return {};
  IMPRINT_ASSIGN(const Commands uploads, program::stream_uploads(runtime, queue_));
  if (!uploads.primary) return {};
  const Result<vk::Ticket> submitted = queue_.submit(std::span(&uploads.primary, 1));
  if (submitted) return {};
  runtime.put_back_uploads(uploads);
  return submitted.error();
}

Result<std::vector<float>> SubmitIssuer::measure(Program& program) {
  if (queue_.completes_by_frames() || device_.capabilities().timestamp_valid_bits == 0)
    return std::vector<float>();
  IMPRINT_CHECK(submit_uploads());
  auto measured = measure_pieces(device_, queue_, frame_.runtime(), program);
  // Recorded work that is not safe yet comes first. The guess stays, and frames correct it.
  if (!measured && measured.error().code == ErrorCode::not_ready) return std::vector<float>();
  return measured;
}

Result<> RecordIssuer::issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) {
  for (const Step& step : work.plan.steps)
    if (jobs.learn_run(step).program->adds_up())
      return make_error(ErrorCode::unsupported,
                        text("frame_record: '", jobs.learn_run(step).program->name(),
                             "': found sums over processes, expected frame_submit: they wait for the GPU."));
  frame_.start_timing(work, jobs, stats);
  if (work.plan.slices.empty()) return {};
  const auto list = frame_.assemble(work, jobs, 0, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
  const vk::Functions& f = device_.functions();
  const vk::CommandLabel label(f, command_buffer_, frame_.label(work, 0));
  f.vkCmdExecuteCommands(command_buffer_, static_cast<std::uint32_t>(list.size()), list.data());
  const vk::Ticket ticket = device_.completion().next();
  in_flight_.recorded(ticket, work.issued_frame);
  frame_.issued(work, jobs, 0, ticket, false, stats);
  frame_.stop_timing(ticket);
  return {};
}

}  // namespace imprint::bridge

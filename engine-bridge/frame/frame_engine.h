#pragma once
// The frame, on a GPU and on the CPU alike: its state, the order of its work, its budgets and its counts. An
// Issuer carries the planned work out.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/frame/frame.h"
#include "engine-bridge/frame/frame_jobs.h"
#include "engine-bridge/frame/governor.h"
#include "engine-bridge/frame/issuer.h"

namespace imprint::bridge {

// Frame thread, except stats().
class FrameEngine {
 public:
  // device: null on the CPU.
  FrameEngine(vk::Device* device, const DeviceRates& rates);

  // ---- checks; `call` names the function in the error ----
  Result<> check_alive(const char* call) const;    // Errors: device_lost
  Result<> check_running(const char* call) const;  // and not quiesced. Errors: wrong_state besides
  Result<> check_closed(const char* call) const;   // and no frame is open
  Result<> check_open(const char* call) const;     // alive, and a frame is open whose work is not issued yet
  FrameState state() const { return state_; }
  bool quiesced() const { return quiesced_; }
  void set_quiesced(bool quiesced) { quiesced_ = quiesced; }

  void set_budget(const Budget& budget);
  FrameJobs& jobs() { return jobs_; }

  // ---- a frame ----
  Result<> begin(const FrameInfo& info, Issuer& issuer);
  Result<> enqueue(FrameJob job);
  Result<> enqueue(const Commands& commands, JobCompleted on_complete, const Issuer& issuer);
  Result<FrameEstimate> estimate();
  // Plans the frame's work and has it issued: once per frame. After a refused submission the rest is issued
  // first in a later frame. `state`: submitted or recorded. Returns the estimated microseconds of learning
  // left. more: see SubmitInfo.
  Result<std::uint32_t> issue(Issuer& issuer, std::uint32_t budget_us, FrameState state,
                              const EnqueueMore& more);
  void give_up_issue();  // see Context
  // Closes the frame, after a device loss too.
  Result<> end();

  // Issues everything, due or not, and calls what has completed. Between frames.
  Result<> issue_everything(Issuer& issuer);
  void call_completed(Issuer& issuer);

  // See FrameCall. They nest.
  void enter_call();
  void leave_call();

  ContextStats stats() const;  // any thread
  void publish_stats();

 private:
  class Call;

  float take_budget(const Issuer& issuer, std::uint32_t budget_us);
  Result<> issue_all(Issuer& issuer, float learn_budget_us, bool everything, const EnqueueMore& more = {});
  Result<> issue_stages(Issuer& issuer, const EnqueueMore& more);
  Result<> issue_work(Issuer& issuer, std::uint64_t frame, float learn_budget_us, bool everything,
                      bool closes_frame);
  void retry_later();
  double us_of(std::uint64_t call_ticks) const;
  std::uint32_t pieces_in_time() const;
  void note_piece_time(std::uint64_t start);

  vk::Device* const device_;
  FrameJobs jobs_;
  Budget budget_;
  Governor governor_;
  FrameState state_ = FrameState::closed;
  bool quiesced_ = false;
  std::optional<std::uint64_t> frame_;
  // Frames whose submission failed, oldest first. Their immediate jobs and what was due in them go first.
  std::vector<std::uint64_t> retry_frames_;
  FrameWork work_;

  // ---- time of frame calls ----
  std::uint32_t call_depth_ = 0;
  bool frame_ended_ = false;      // by the current call
  std::uint64_t call_start_ = 0;  // ticks
  std::uint64_t call_ticks_ = 0;  // inside the frame's calls so far
  std::uint64_t frame_start_ticks_ = 0;
  std::chrono::steady_clock::time_point frame_start_;
  // The frame thread's time per issued piece, smoothed; measured where that time is limited.
  double piece_cpu_us_ = 2;

  ContextStats counted_;  // frame thread
  mutable std::mutex stats_mutex_;
  ContextStats published_;  // any thread
};

}  // namespace imprint::bridge

#pragma once
// How a frame's planned work is carried out: submitted to a queue, recorded into the host's command buffer,
// or run on the CPU. The FrameEngine plans; an Issuer does the rest. One virtual call per plan, none per
// dispatch.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/queue.h"
#include "engine-bridge/frame/frame.h"
#include "engine-bridge/frame/frame_jobs.h"
#include "engine-bridge/frame/frame_schedule.h"

namespace imprint::bridge {

// The work of one plan. Reused from frame to frame.
struct FrameWork {
  std::uint64_t frame = 0;  // whose work runs: the current frame, or an earlier one whose submission failed
  std::uint64_t issued_frame = 0;   // the current frame
  bool closes_frame = true;         // nothing more of the current frame follows
  float budget_us = 0;              // of the whole frame
  std::size_t immediate_count = 0;  // not issued yet; of FrameJobs::immediate
  float immediate_us = 0;           // estimated, or measured when they have run
  bool first_slice_open = false;    // the first slice has work that is no learning
  FramePlan plan;
};

class Issuer {
 public:
  struct Traits {
    bool on_frame_thread = false;  // its work takes the frame thread's time, which the budget limits
    bool cuts_slices = false;      // Budget::max_slice_us applies
  };
  explicit Issuer(Traits traits) : traits_(traits) {}
  virtual ~Issuer() = default;
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;
  const Traits& traits() const { return traits_; }

  // ---- frame thread ----
  virtual void begin_frame(const FrameInfo& info) = 0;
  // Before planning. Fills immediate_us and first_slice_open; may run immediate jobs at once. On an error
  // nothing has happened.
  virtual Result<> prepare(FrameWork& work, FrameJobs& jobs, ContextStats& stats) = 0;
  // Carries out the plan slice by slice. On an error the slices before it are issued and the rest is not.
  virtual Result<> issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) = 0;
  // The newest ticket up to which everything is complete. Reads the times of completed frames. Never blocks.
  virtual vk::Ticket completed(FrameJobs& jobs, ContextStats& stats) = 0;
  virtual Result<> check(const Commands& commands) const = 0;  // usable here. Errors: invalid_argument

  // ---- create-time; blocks ----
  // Errors: unsupported (no way to wait here), not_ready (time over), device_lost.
  virtual Result<> wait(std::uint64_t timeout_ns) = 0;
  virtual Result<> run_now(const Commands& commands) = 0;
  virtual Result<> run_now(Program& program) = 0;  // its slot 0
  // Microseconds of the pieces before the first that writes a variable; empty: cannot be measured here.
  virtual Result<std::vector<float>> measure(Program& program) = 0;

 private:
  const Traits traits_;
};

}  // namespace imprint::bridge

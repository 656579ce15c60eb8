#pragma once
// Inputs and results of a frame: plain data, the same on a GPU and on the CPU.

#include <cstdint>
#include <functional>
#include <span>

#include "compute/base/result.h"
#include "engine-bridge/frame/governor.h"
#include "engine-bridge/host/host_semaphore.h"

namespace imprint {
class Program;
}

namespace imprint::bridge {

// Where a frame stands. The only record of "is a frame open": FrameEngine owns it.
enum class FrameState : std::uint8_t {
  closed,
  open,
  submitted,  // open; its work is with the queue, or done on the CPU
  recorded    // open; its work is in the host's command buffer
};
// Errors: wrong_state, naming the call, what was found and what to do.
Result<> check_frame_closed(FrameState state, const char* call);
Result<> check_frame_open(FrameState state, const char* call);  // and its work is not issued yet

struct Budget {
  // Learning that is not due fills this up; immediate jobs count too. 0 = only what is due.
  std::uint32_t gpu_us_per_frame = 500;
  std::uint32_t max_slice_us = 1000;  // longest single submission of learning; 0 = no limit
  Preference preference = Preference::graphics;
  std::uint32_t frame_gpu_us = 0;  // limit for the host's whole frame, see FrameInfo::host_gpu_us; 0 = none
  // Limit for all frame calls of a frame together (ContextStats::frame_cpu_us); 0 = none. Learning that is
  // not due waits for a later frame when no time is left. On the CPU it also limits gpu_us_per_frame.
  std::uint32_t cpu_us_per_frame = 0;
};

struct FrameInfo {
  std::uint64_t frame = 0;  // rises by one or more
  // Recorded work up to and including this frame is complete. Also used for submissions that have neither
  // fence nor timeline.
  std::uint64_t safe_frame = 0;
  std::uint32_t host_gpu_us =
      0;  // GPU time of the newest whole frame that the host has measured; 0 = unknown
};

// budget_us of submit() and record(): use Budget::gpu_us_per_frame.
inline constexpr std::uint32_t kFromBudget = UINT32_MAX;

// Enqueues jobs that must follow all that is issued so far. Returns false when nothing is left.
using EnqueueMore = std::function<Result<bool>()>;

// Semaphores of one submit, beside the frame's work. With semaphores even an empty frame is submitted.
struct SubmitInfo {
  std::uint32_t budget_us = kFromBudget;
  std::span<const HostSemaphore> waits,
      completions;        // before the frame's first and after its last submission
  EnqueueMore more = {};  // set: issues everything, due or not, then what this enqueues, until it says false
};

// Receives the frame in which the job's last piece was issued.
using JobCompleted = std::function<void(std::uint64_t issued_frame)>;

enum class FrameJobKind : std::uint8_t { immediate, learn };

// One run of a program in one of its slots. The program must outlive the job's completion.
struct FrameJob {
  Program* program = nullptr;
  std::uint32_t slot = 0;  // in use until completion, unless the program has neither inputs nor outputs
  FrameJobKind kind = FrameJobKind::immediate;
  // learn: the frame in which it finishes, outputs included. A past frame counts as the current one.
  std::uint64_t deadline_frame = 0;
  // learn: jobs of one stream run one after the other, in the order of enqueue, and their deadlines must not
  // fall. Work that shares no variables takes another stream.
  std::uint64_t stream = 0;
  // Called by a later frame_begin or drain, on its thread, once the GPU has finished. May be empty. May
  // enqueue further jobs.
  JobCompleted on_complete;
};

struct FrameTimes {
  std::uint64_t frame = 0;  // newest frame whose times are known; 0 = none yet
  float immediate_us = 0;   // GPU time of immediate jobs
  float learn_us = 0;       // GPU time of learn slices
};

// Estimated GPU time of what is enqueued, microseconds.
struct FrameEstimate {
  float due_us = 0;    // runs whatever the budget: immediate jobs, and learn jobs at their deadline
  float later_us = 0;  // the other learn jobs, which the budget limits
};

struct ContextStats {
  std::uint64_t frames = 0, submits = 0, slices = 0, over_budget_frames = 0;
  FrameTimes times;
  double immediate_us = 0, learn_us = 0;  // of all frames whose times are known
  float learn_share = 1;                  // of the budget, after the governor
  float frame_cpu_us = 0;                 // wall clock inside the frame calls of the last closed frame
  // Frames in which learning had GPU budget but no CPU time left, and frames that went over cpu_us_per_frame.
  std::uint64_t cpu_deferred_frames = 0, over_cpu_frames = 0;
};

}  // namespace imprint::bridge

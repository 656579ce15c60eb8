#pragma once
// The meeting of a host's device, queue, frame and budget with Imprint's programs. Everything about the host
// stops here; programs below and agents above see plain data.
//
// A frame: frame_begin, then jobs are enqueued, then submit() or record() puts them in order, then frame_end.
// Order inside a frame:
//   1. uploads of state (Runtime::take_uploads)
//   2. immediate jobs, whole, in the order of enqueue (inference, snapshots, readbacks)
//   3. learn jobs, in the order of enqueue: first everything that is due (deadline_frame <= frame), whatever
//   the budget, then pieces of the others
//      as far as the budget goes, up to but not including Program::first_shared_write(). So what a learn job
//      writes becomes visible at its deadline frame exactly, after that frame's immediate jobs, however the
//      pieces before were cut: play is the same to the bit for any budget.
// Each slice starts with Runtime::barrier().
//
// A submission that the host's queue refuses loses nothing: what was left of its frame goes first in the next
// one that works, in its own order, uploads included. A frame without submit or record is legal; its jobs are
// the next frame's.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"
#include "compute/vk/queue.h"
#include "engine-bridge/frame/governor.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

// How the host lets us at its queue (R9, R10). queue null: record only. Otherwise exactly one of lock +
// unlock, submit, run, single_thread, internally_synchronized, exclusive; with the last, lock + unlock may be
// given besides.
struct QueueAccess {
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  std::uint32_t index = 0;
  void (*lock)(void* user, VkQueue queue) = nullptr;
  void (*unlock)(void* user, VkQueue queue) = nullptr;
  VkResult (*submit)(void* user, VkQueue queue, std::uint32_t submit_count, const VkSubmitInfo* submits,
                     VkFence fence) = nullptr;
  // Runs work(data, queue) where the host may submit, and returns when it has run.
  void (*run)(void* user, void (*work)(void* data, VkQueue queue), void* data) = nullptr;
  bool single_thread = false;
  bool internally_synchronized =
      false;  // by the driver (VK_KHR_internally_synchronized_queues) or by a layer of the host's
  // The host uses the queue for nothing: a thread of ours submits to it, beside whatever the host draws, and
  // the frame thread only says what. All our work runs there, in its own order; towards the host's queues
  // only SubmitInfo's semaphores order it, so there is no record. The budget is then of this queue's time,
  // not of the host's frame: what a frame hands over runs beside it, and inference waits for at most what is
  // still under way.
  bool exclusive = false;
  // `submit` passes no fence on. Without timeline semaphores a submission is then complete when the host
  // calls its frame safe, as with record.
  bool submit_without_fence = false;
  void* user = nullptr;
};

struct Budget {
  std::uint32_t gpu_us_per_frame = 500;  // for learn jobs that are not due, immediate jobs of the frame
                                         // included in the sum; 0 = only what is due
  std::uint32_t max_slice_us = 1000;     // longest single submission of learning; 0 = no limit
  Preference preference = Preference::graphics;
  std::uint32_t frame_gpu_us =
      0;  // what a whole frame of the host's may take, for FrameInfo::host_gpu_us; 0 = nothing to keep to
  // Of the frame thread, for all frame calls of a frame together (ContextStats::frame_cpu_us); 0 = no limit.
  // Learning that is not due waits for a later frame when the calls so far, and what handing it over will
  // take, leave no time for it. On the processor it limits gpu_us_per_frame.
  std::uint32_t cpu_us_per_frame = 0;
};

struct FrameInfo {
  std::uint64_t frame = 0;       // rises by one or more
  std::uint64_t safe_frame = 0;  // recorded work up to and including this frame is complete (record, and
                                 // submit without fence or timeline)
  std::uint32_t host_gpu_us =
      0;  // GPU time of the newest whole frame that the host has measured; 0 = unknown
};

// As budget_us of submit() and record(): that of Budget.
inline constexpr std::uint32_t kFromBudget = UINT32_MAX;

// What one submit carries beside the frame's work.
struct SubmitInfo {
  std::uint32_t budget_us = kFromBudget;          // kFromBudget = Budget::gpu_us_per_frame
  std::span<const HostSemaphore> waits, signals;  // before the frame's first submission, behind its last;
                                                  // with both even an empty frame is submitted
};

enum class JobKind : std::uint8_t { immediate, learn };

// One run of a program in one of its slots. The program must outlive the job's completion.
struct Job {
  Program* program = nullptr;
  std::uint32_t slot = 0;  // taken until completion, unless the program has neither inputs nor outputs
  JobKind kind = JobKind::immediate;
  std::uint64_t deadline_frame =
      0;  // learn: the frame in which it finishes, its outputs included; a past one: the current frame
  // learn: jobs of one stream run strictly one after the other, in the order of enqueue, so that each reads
  // what those before it wrote; their deadlines must not fall. Work that shares no variables (another brain)
  // takes a stream of its own, and then need not wait its turn.
  std::uint64_t stream = 0;
  // Called by a later frame_begin (or drain) on its thread once the GPU is done, with the frame in which the
  // last piece was issued. May be empty. May enqueue further jobs.
  std::function<void(std::uint64_t issued_frame)> on_complete;
};

struct FrameTimes {
  std::uint64_t frame = 0;  // newest frame whose timestamps have arrived; 0 = none yet
  float immediate_us = 0;   // GPU time of immediate jobs
  float learn_us = 0;       // GPU time of learn slices
};

// GPU time of what is enqueued, microseconds, as far as costs are known.
struct FrameEstimate {
  float due_us = 0;    // of the frame, whatever the budget: immediate jobs, and learn jobs at their deadline
  float later_us = 0;  // of the other learn jobs, of which the budget decides
};

struct ContextStats {
  std::uint64_t frames = 0, submits = 0, slices = 0, over_budget_frames = 0;
  FrameTimes times;
  float learn_share = 1;   // of the budget, as the host's own frame time leaves it
  float frame_cpu_us = 0;  // inside the frame calls (FrameCall) of the last closed frame, wall clock
  // Frames in which learning that gpu_us_per_frame had room for waited for time of the frame thread, and
  // frames whose calls took more than they may.
  std::uint64_t cpu_deferred_frames = 0, over_cpu_frames = 0;
};

// What tells that work is complete.
enum class CompletedBy : std::uint8_t {
  timeline,
  fences,
  frames,
  calls
};  // calls: submit returns when all is done

struct ContextDescription {
  vk::DeviceDescription device;  // queue_family is taken from `queue.family`
  vk::DeviceOptions options;
  QueueAccess queue;
  Budget budget;
};

// One frame thread; see each method.
class Context {
 public:
  // Errors: those of vk::Device::adopt; invalid_argument when a queue is given with none or several ways to
  // submit (says which are missing).
  static Result<std::unique_ptr<Context>> adopt(const ContextDescription& description);
  // On the processor, without Vulkan: submit() runs the frame's jobs on its thread, and
  // Budget::gpu_us_per_frame is of that thread's time.
  static std::unique_ptr<Context> on_cpu(const LogSink& log, const Budget& budget);
  virtual ~Context() =
      default;  // waits for own submits (bounded), never for the device or a queue to go idle

  virtual vk::Device* vulkan() = 0;           // null on the processor
  vk::Device& device() { return *vulkan(); }  // not on the processor
  bool lost() { return vulkan() && vulkan()->lost(); }
  virtual void stand_still() {
  }  // any thread; of a lost device: when it returns, no thread of ours is at a queue
  // Before it is destroyed, and nothing follows: waits for own submits, as the destructor else does, so that
  // a loss that is met there can be told. What was recorded is the caller's to know complete.
  virtual void finish() {}
  virtual Runtime& runtime() = 0;
  virtual vk::Queue*
  queue() = 0;  // null where nothing can be waited for; blocking use is for create-time threads
  virtual bool submits() const = 0;    // false: record only
  virtual bool exclusive() const = 0;  // the queue is ours alone: no record
  virtual CompletedBy completed_by() const = 0;
  // Ours, with the value that it reaches when all that was submitted is complete. Errors: unsupported (no
  // timeline, no queue), not_ready (nothing yet).
  virtual Result<HostSemaphore> semaphore() const = 0;
  virtual std::string report()
      const = 0;  // adoption report as text: device, what is used, what is missing, cost, remedy

  // ---- create-time ----
  // Runs once, behind pending uploads, and waits. Errors: unsupported (nothing can be waited for),
  // wrong_state (quiet), device_lost.
  virtual Status run_now(const Commands& commands) = 0;
  virtual Status run_now(Program& program) = 0;  // its slot 0
  // Runs the program once alone with timestamps round each piece, to seed the cost model: needs a queue,
  // writes no variable (pieces from first_state_write on are estimated). Without a queue or timestamps the
  // estimate starts from bytes and flops and is corrected by frames.
  virtual Status measure(Program& program) = 0;
  virtual void set_budget(const Budget& budget) = 0;
  // Submits pending uploads and jobs, due or not, and waits. Errors: unsupported (record only), not_ready
  // (time over), device_lost.
  virtual Status drain(std::uint64_t timeout_ns) = 0;
  // Waits for own submissions; from then on nothing of ours touches the queue until resume(), so that the
  // host may wait for its device to be idle. Frames, measure and drain are refused in between. Errors:
  // not_ready (time over; not quiet then), device_lost.
  virtual Status quiesce(std::uint64_t timeout_ns) = 0;
  virtual Status resume() = 0;
  virtual Status check_loud(
      const char* call) const = 0;  // wrong_state while quiet, for who submits to queue() itself; device_lost
  // Forgets all jobs of a program that was not finished, and returns when its pieces in flight need nothing
  // more of it (retires by ticket, no wait).
  virtual void cancel(const Program& program) = 0;
  // The same for commands that were enqueued: called before what owns them goes.
  virtual void cancel(const Commands& commands) = 0;

  // Buffers that host and programs share: place variables in them with Runtime::place_in. Errors: see
  // shared_buffer.h.
  virtual Result<std::shared_ptr<SharedBuffer>> import_buffer(const HostBuffer& host) = 0;
  virtual Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) = 0;
  // Whoever shared it gives it up: a change of owner that no submission has carried yet is none any more.
  virtual void forget(const std::shared_ptr<SharedBuffer>& buffer) = 0;

  // ---- frame thread ----
  virtual Status frame_begin(const FrameInfo& info) = 0;
  virtual Status enqueue(Job job) = 0;
  // Commands to run once among the immediate jobs (readbacks). Kept alive by the caller until on_complete.
  virtual Status enqueue(const Commands& commands,
                         std::function<void(std::uint64_t issued_frame)> on_complete) = 0;
  virtual Result<FrameEstimate> estimate() = 0;  // before submit or record
  // Takes a shared buffer over from the host's family at the start of this frame's work, and gives it back at
  // its end. Nothing to do, and no error, for buffers that are not handed over (SharedBuffer::transfers).
  // Errors: wrong_state (no open frame; not whose turn it is).
  virtual Status acquire(const std::shared_ptr<SharedBuffer>& buffer) = 0;
  virtual Status release(const std::shared_ptr<SharedBuffer>& buffer) = 0;
  virtual Status submit(const SubmitInfo& info) = 0;
  Status submit(std::uint32_t budget_us) { return submit(SubmitInfo{budget_us, {}, {}}); }
  virtual Result<std::uint32_t> record(VkCommandBuffer command_buffer,
                                       std::uint32_t budget_us) = 0;  // estimated us of learning left over
  virtual Status frame_end() = 0;
  // The length of a call from the frame thread; see FrameCall.
  virtual void enter_frame_call() = 0;
  virtual void leave_frame_call() = 0;

  virtual ContextStats stats() const = 0;  // any thread
};

// While one lives, what this thread does counts as done on the frame thread (vk::Counters::on_frame), and its
// time as the frame's. The frame calls above hold one; whoever does more for the game's frame than call them
// holds one round all of it. They nest.
class FrameCall {
 public:
  explicit FrameCall(Context& context) : context_(context) { context_.enter_frame_call(); }
  ~FrameCall() { context_.leave_frame_call(); }
  FrameCall(const FrameCall&) = delete;
  FrameCall& operator=(const FrameCall&) = delete;

 private:
  Context& context_;
};

}  // namespace imprint::bridge

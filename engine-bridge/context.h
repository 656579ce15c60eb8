#pragma once
// Brings a host's device, queue, frame and budget together with Imprint's programs. Rooms below see plain
// data; agents above see this header.
//
// A frame: frame_begin, then enqueue jobs, then submit() or record(), then frame_end. Its work runs in this
// order:
//   1. uploads of state (Runtime::take_uploads)
//   2. immediate jobs, whole, in the order of enqueue (inference, snapshots, readbacks)
//   3. learn jobs, in the order of enqueue: first all that are due (deadline_frame <= frame), whatever the
//      budget; then pieces of the others as the budget allows, up to Program::commit_piece(). The writes of a
//      learn job become visible exactly at its deadline frame, after that frame's immediate jobs. So play is
//      the same to the bit for any budget.
// Each slice starts with Runtime::barrier().
//
// A submission that the queue refuses loses nothing: the rest of its frame goes first in the next one that
// works, in its own order, uploads included. A frame without submit or record is legal; its jobs run in the
// next frame.

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <memory>
#include <string>

#include "compute/base/result.h"
#include "compute/program/program.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"
#include "compute/vk/queue.h"
#include "engine-bridge/frame/frame.h"
#include "engine-bridge/host/queue_access.h"
#include "engine-bridge/host/shared_buffer.h"

namespace imprint::bridge {

// How a context learns that work is complete.
enum class CompletedBy : std::uint8_t {
  timeline,
  fences,
  frames,  // the host's safe frames
  calls    // submit returns when all is done
};

struct ContextDescription {
  vk::DeviceDescription device;  // queue_family is taken from `queue.family`
  vk::DeviceOptions options;
  QueueAccess queue;
  Budget budget;
};

// One frame thread, unless a function says otherwise.
class Context {
 public:
  // Errors: those of vk::Device::adopt and check_queue_access.
  static Result<std::unique_ptr<Context>> adopt(const ContextDescription& description);
  // Without Vulkan: submit() runs the frame's work on its thread, with the help of `threads`.
  // gpu_us_per_frame then limits its time.
  static std::unique_ptr<Context> on_cpu(const LogSink& log, const Budget& budget,
                                         const CpuThreads& threads = {});
  // Waits up to 10 s for Imprint's submissions. Never waits for the device or a queue to be idle.
  virtual ~Context() = default;

  virtual vk::Device* vulkan() = 0;           // null on the CPU
  vk::Device& device() { return *vulkan(); }  // not on the CPU
  bool lost() { return vulkan() && vulkan()->lost(); }
  // Call on a lost device before the host is told. On return no thread of Imprint submits. Any thread.
  virtual void stop_submitting() = 0;
  // Call last, before destruction. Waits for Imprint's submissions, so that a device loss can still be
  // reported. The caller knows that recorded work is complete.
  virtual void finish() = 0;
  virtual Runtime& runtime() = 0;
  virtual vk::Queue* queue() = 0;      // null: nothing can be waited for. Blocking use at create time only.
  virtual bool submits() const = 0;    // false: record only
  virtual bool exclusive() const = 0;  // the queue is Imprint's alone: no record
  virtual CompletedBy completed_by() const = 0;
  // Imprint's semaphore and the value that it reaches when everything submitted is complete. Errors:
  // unsupported (no timeline, no queue), not_ready (nothing submitted yet).
  virtual Result<HostSemaphore> semaphore() const = 0;
  virtual std::string report()
      const = 0;  // adoption report: device, what is used, what is missing and its cost
  virtual FrameState frame_state() const = 0;
  // An open frame whose work could not be issued counts as issued from here on.
  virtual void give_up_issue() = 0;

  // ---- create-time: no frame is open; blocks ----
  // Runs once after pending uploads, and waits. Errors: unsupported (nothing can be waited for), wrong_state
  // (quiesced), device_lost.
  virtual Result<> run_now(const Commands& commands) = 0;
  virtual Result<> run_now(Program& program) = 0;  // its slot 0
  // Seeds the cost model: runs the program alone with a timestamp around each piece, up to the first that
  // writes a variable; later pieces are estimated. Without a queue or timestamps the estimate starts from
  // bytes and flops. Errors: wrong_state (the program has jobs).
  virtual Result<> measure(Program& program) = 0;
  virtual void set_budget(const Budget& budget) = 0;
  // Submits pending uploads and jobs, due or not, and waits. Errors: unsupported (nothing can be waited for),
  // not_ready (time over), wrong_state, device_lost.
  virtual Result<> drain(std::uint64_t timeout_ns) = 0;
  // Waits for Imprint's submissions. Until resume() Imprint touches no queue, so that the host may wait for
  // its device to be idle; frames, measure and drain are wrong_state. Errors: not_ready (time over; not
  // quiesced then), wrong_state, device_lost.
  virtual Result<> quiesce(std::uint64_t timeout_ns) = 0;
  virtual Result<> resume() = 0;
  // The host waited until its device is idle, and submits nothing more that was recorded before: all recorded
  // work is complete. Calls what has completed. Errors: wrong_state (a frame is open), device_lost.
  virtual Result<> device_idle() = 0;
  // For callers that submit to queue() themselves. Errors: wrong_state (quiesced), device_lost.
  virtual Result<> check_running(const char* call) const = 0;
  // Forgets all incomplete jobs of the program or commands; their on_complete is not called. On return the
  // caller may destroy them: pieces in flight retire by ticket.
  virtual void cancel(const Program& program) = 0;
  virtual void cancel(const Commands& commands) = 0;

  // Buffers that host and programs share. Runtime::place_in places variables in them. Errors: see
  // shared_buffer.h; unsupported (on the CPU).
  virtual Result<std::shared_ptr<SharedBuffer>> import_buffer(const HostBuffer& host) = 0;
  virtual Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) = 0;
  // Before its owner destroys the buffer: changes of owner that are not issued yet are dropped.
  virtual void forget(const std::shared_ptr<SharedBuffer>& buffer) = 0;

  // ---- frame ----
  // Errors of all: wrong_state (no frame is open, or its work is issued already), device_lost.
  // frame_begin besides: invalid_argument (the frame number does not rise), wrong_state (a frame is open, or
  // quiesced).
  virtual Result<> frame_begin(const FrameInfo& info) = 0;
  virtual Result<> enqueue(FrameJob job) = 0;
  // Commands that run once among the immediate jobs. They must live until on_complete.
  virtual Result<> enqueue(const Commands& commands, JobCompleted on_complete) = 0;
  virtual Result<FrameEstimate> estimate() = 0;
  // Takes a shared buffer from the host's family at the start of this frame's work, and gives it back at its
  // end. Nothing to do without SharedBuffer::transfers. Errors: wrong_state (the other side owns it).
  virtual Result<> acquire(const std::shared_ptr<SharedBuffer>& buffer) = 0;
  virtual Result<> release(const std::shared_ptr<SharedBuffer>& buffer) = 0;
  // Errors: unsupported (record only; semaphores on the CPU).
  virtual Result<> submit(const SubmitInfo& info) = 0;
  Result<> submit(std::uint32_t budget_us) { return submit(SubmitInfo{budget_us, {}, {}}); }
  // Returns the estimated microseconds of learning that are left. Errors: unsupported (an exclusive queue,
  // the CPU), invalid_argument (null).
  // more: see SubmitInfo.
  virtual Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us,
                                       const EnqueueMore& more = {}) = 0;
  virtual Result<> frame_end() = 0;
  // Around a call from the frame thread; see FrameCall.
  virtual void enter_frame_call() = 0;
  virtual void leave_frame_call() = 0;

  virtual ContextStats stats() const = 0;  // any thread
};

// While one lives, this thread's work counts as the frame's (vk::Counters::on_frame), and so does its time.
// The frame functions above hold one; a caller that does more for the frame holds one around all of it. They
// nest.
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

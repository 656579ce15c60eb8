#pragma once
// The one Context: members by concern in context.cpp (adoption, reports, waiting) and context_frame.cpp (the
// frame).

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine-bridge/context.h"
#include "engine-bridge/frame/command_set.h"
#include "engine-bridge/frame/cost_model.h"
#include "engine-bridge/frame/frame_border.h"
#include "engine-bridge/frame/frame_schedule.h"
#include "engine-bridge/frame/gpu_timer.h"
#include "engine-bridge/host/in_flight.h"
#include "engine-bridge/host/queue_access.h"

namespace imprint::bridge {

class ContextImpl final : public Context {
 public:
  static Result<std::unique_ptr<Context>> adopt(const ContextDescription& description);
  ~ContextImpl() override;

  vk::Device* vulkan() override { return device_.get(); }
  Runtime& runtime() override { return *runtime_; }
  vk::Queue* queue() override { return waits() ? queue_.get() : nullptr; }
  bool submits() const override { return queue_ != nullptr; }
  bool exclusive() const override { return exclusive_; }
  void stand_still() override {
    if (queue_) queue_->stand_still();
  }
  void finish() override;
  CompletedBy completed_by() const override;
  Result<HostSemaphore> semaphore() const override;
  std::string report() const override;
  Status run_now(const Commands& commands) override;
  Status run_now(Program& program) override;
  Status measure(Program& program) override;
  void set_budget(const Budget& budget) override;
  Status drain(std::uint64_t timeout_ns) override;
  Status quiesce(std::uint64_t timeout_ns) override;
  Status resume() override;
  Status check_loud(const char* call) const override;
  void cancel(const Program& program) override;
  void cancel(const Commands& commands) override;

  Status frame_begin(const FrameInfo& info) override;
  Status enqueue(Job job) override;
  Status enqueue(const Commands& commands, std::function<void(std::uint64_t)> on_complete) override;
  Result<FrameEstimate> estimate() override;
  Result<std::shared_ptr<SharedBuffer>> import_buffer(const HostBuffer& host) override;
  Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) override;
  void forget(const std::shared_ptr<SharedBuffer>& buffer) override { border_->forget(buffer); }
  Status acquire(const std::shared_ptr<SharedBuffer>& buffer) override;
  Status release(const std::shared_ptr<SharedBuffer>& buffer) override;
  using Context::submit;
  Status submit(const SubmitInfo& info) override;
  Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us) override;
  Status frame_end() override;
  void enter_frame_call() override;
  void leave_frame_call() override;
  ContextStats stats() const override;

 private:
  using Completed = std::function<void(std::uint64_t issued_frame)>;

  // A program's whole run, or foreign commands.
  struct Immediate {
    std::uint64_t frame = 0;
    Program* program = nullptr;
    std::uint32_t slot = 0;
    Commands commands;
    Completed on_complete;
  };
  struct Learn {
    std::uint64_t id = 0;
    Program* program = nullptr;
    std::uint32_t slot = 0;
    Completed on_complete;
  };
  // Given to the GPU as a whole; in the order of tickets.
  struct Issued {
    vk::Ticket ticket;
    std::uint64_t frame = 0;
    const Program* program = nullptr;           // null: foreign commands, or cancelled
    VkCommandBuffer commands = VK_NULL_HANDLE;  // the foreign ones
    std::uint32_t slot = 0;
    Completed on_complete;
  };
  struct KnownProgram {
    std::string
        name;  // with the piece count: tells a program from another that was later put at the same address
    ProgramCost cost;
  };
  // What a timed frame contained, by the timer's entry.
  struct Share {
    const Program* program = nullptr;
    std::uint32_t section = 0;
    float us = 0;
  };
  struct Note {
    std::uint64_t frame = 0;
    float budget_us = 0;
    bool immediate_is_known = true;  // no uploads or foreign commands among them
    std::vector<Share> shares;
  };
  enum class State : std::uint8_t { closed, open, submitted, recorded };

  ContextImpl() = default;
  Status check_alive(const char* call) const;
  bool waits() const { return queue_ && !queue_->by_frames(); }
  Status check_can_issue(const char* call) const;
  ProgramCost& cost_of(const Program& program);
  const Learn& learn_of(const LearnJob& job) const;

  // Plans what is left of `frame`: immediate jobs enqueued up to it, and learn jobs.
  void plan(std::uint64_t frame, float learn_budget_us, float max_slice_us, bool everything);
  Status take_uploads();
  bool assemble(std::size_t slice,
                VkCommandBufferLevel level);  // adds to list_; whether the exit barrier is among it
  void assemble_step(const Step& step, bool after_barrier, VkCommandBufferLevel level);
  void issued(std::size_t slice, vk::Ticket ticket);
  const char* slice_label(std::size_t slice) const;           // what it is called in captures
  Status submit_planned(bool closes);                         // closes: the frame's last plan
  Status submit_all(float learn_budget_us, bool everything);  // what is owed, then the frame's
  void owe_frame();
  float take_budget(std::uint32_t budget_us);
  double us_of(std::uint64_t call_ticks) const;  // of this frame's
  std::uint32_t pieces_in_time() const;
  void note_piece_time(std::uint64_t start);  // of the plan that was just issued, begun at these ticks
  void record_planned(VkCommandBuffer command_buffer, bool closes);
  void finish_issue(vk::Ticket ticket);
  std::span<Immediate> immediate_planned() { return std::span(immediate_).first(immediate_count_); }
  bool has_immediate_work() const { return immediate_count_ > 0 || uploads_.primary != VK_NULL_HANDLE; }

  Status share(const std::shared_ptr<SharedBuffer>& buffer);
  void publish_stats();
  void read_times(vk::Ticket complete);
  void call_completed(vk::Ticket complete);

  // Destroyed from the last to the first.
  std::unique_ptr<vk::Device> device_;
  std::unique_ptr<InFlight> in_flight_;
  std::unique_ptr<HostQueue> queue_;  // null: record only
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<GpuTimer> timer_;
  std::unique_ptr<CommandSet> commands_;
  std::unique_ptr<FrameBorder> border_;

  Budget budget_;
  Governor governor_;
  bool exclusive_ = false;
  bool quiet_ = false;
  bool finished_ = false;
  State state_ = State::closed;
  bool in_completion_ = false;  // on_complete callbacks are running
  std::optional<std::uint64_t> frame_;
  std::uint64_t next_id_ = 1;

  std::vector<Immediate> immediate_;
  std::vector<Learn> learn_;
  FrameSchedule schedule_;
  std::vector<Issued> issued_;       // oldest first
  std::vector<std::uint64_t> owed_;  // frames whose submission failed, oldest first: their immediate jobs and
                                     // what was due in them go first
  std::unordered_map<const Program*, KnownProgram> known_;

  // ---- of the frame being issued ----
  FramePlan plan_;
  std::size_t immediate_count_ = 0;  // of immediate_, from the first
  Commands uploads_;
  float immediate_us_ = 0;
  float frame_budget_us_ = 0;
  std::optional<std::uint32_t> timing_;
  std::uint32_t section_ = 0;  // the open one of learn slices, 0 = none
  std::vector<VkCommandBuffer> list_;
  std::array<Note, GpuTimer::kFrames> notes_;

  // ---- frame calls ----
  std::uint32_t call_depth_ = 0;
  bool frame_ended_ = false;      // by the call under way
  std::uint64_t call_start_ = 0;  // ticks
  std::uint64_t call_ticks_ = 0;  // inside the frame's calls so far
  std::uint64_t frame_start_ticks_ = 0;
  double piece_cpu_us_ = 2;  // that handing a piece over takes, submissions included, smoothed; kept where
                             // the thread's time is limited
  std::chrono::steady_clock::time_point frame_start_;

  ContextStats counted_;  // frame thread
  mutable std::mutex stats_mutex_;
  ContextStats published_;  // any thread
};

}  // namespace imprint::bridge

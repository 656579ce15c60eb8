#pragma once
// The Context of the processor: the same order of a frame, run by submit() on the frame thread. What a learn
// job does early is cut at kernels to keep to the budget, which here is the thread's own time.

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "engine-bridge/context.h"
#include "engine-bridge/frame/cost_model.h"
#include "engine-bridge/frame/frame_schedule.h"

namespace imprint::bridge {

class CpuContext final : public Context {
 public:
  CpuContext(LogSink log, const Budget& budget) : runtime_(Runtime::create_on_cpu(log)), budget_(budget) {}

  vk::Device* vulkan() override { return nullptr; }
  Runtime& runtime() override { return *runtime_; }
  vk::Queue* queue() override { return nullptr; }
  bool submits() const override { return true; }
  bool exclusive() const override { return false; }
  CompletedBy completed_by() const override { return CompletedBy::calls; }
  Result<HostSemaphore> semaphore() const override {
    return make_error(ErrorCode::unsupported, "semaphore: the context is the processor's, which has none");
  }
  std::string report() const override;
  Status run_now(const Commands& commands) override;
  Status run_now(Program& program) override;
  Status measure(Program& program) override;
  void set_budget(const Budget& budget) override { budget_ = budget; }
  Status drain(std::uint64_t timeout_ns) override;
  Status quiesce(std::uint64_t timeout_ns) override;
  Status resume() override;
  Status check_loud(const char* call) const override;
  void cancel(const Program& program) override;
  void cancel(const Commands& commands) override;
  Result<std::shared_ptr<SharedBuffer>> import_buffer(const HostBuffer&) override {
    return no_buffers("import_buffer");
  }
  Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest&) override {
    return no_buffers("create_buffer");
  }
  void forget(const std::shared_ptr<SharedBuffer>&) override {}

  Status frame_begin(const FrameInfo& info) override;
  Status enqueue(Job job) override;
  Status enqueue(const Commands& commands, std::function<void(std::uint64_t)> on_complete) override;
  Status acquire(const std::shared_ptr<SharedBuffer>&) override { return no_buffers("acquire"); }
  Status release(const std::shared_ptr<SharedBuffer>&) override { return no_buffers("release"); }
  using Context::submit;
  Status submit(const SubmitInfo& info) override;
  Result<FrameEstimate> estimate() override;
  Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us) override;
  Status frame_end() override;
  void enter_frame_call() override;
  void leave_frame_call() override;
  ContextStats stats() const override;

 private:
  static Error no_buffers(const char* call);

  using Clock = std::chrono::steady_clock;
  using Completed = std::function<void(std::uint64_t issued_frame)>;
  // A program's run, or work.
  struct Pending {
    std::uint64_t id = 0;  // of a learn job
    Program* program = nullptr;
    std::uint32_t slot = 0;
    CpuWork* work = nullptr;
    Completed on_complete;
  };
  struct Done {
    const Program* program = nullptr;
    const CpuWork* work = nullptr;
    std::uint32_t slot = 0;
    std::uint64_t frame = 0;
    Completed on_complete;
  };
  enum class State : std::uint8_t { closed, open, submitted };

  Status check_closed(const char* call) const;
  Status check_open(const char* call) const;
  ProgramCost& cost_of(const Program& program);
  float immediate_us();
  void run_jobs(float learn_budget_us, bool everything);
  void run_immediate();
  void run_step(const Step& step);
  void complete(Pending& job);
  void call_completed();
  void publish_stats();

  std::unique_ptr<Runtime> runtime_;
  Budget budget_;
  State state_ = State::closed;
  bool quiet_ = false, in_completion_ = false;
  std::optional<std::uint64_t> frame_;
  std::uint64_t next_id_ = 1;
  std::vector<Pending> immediate_, learn_;
  FrameSchedule schedule_;
  FramePlan plan_;
  std::deque<Done> done_;  // whose on_complete waits for the next frame
  std::unordered_map<const Program*, ProgramCost> costs_;

  std::uint32_t call_depth_ = 0;
  Clock::time_point call_start_{};
  float call_us_ = 0;
  ContextStats counted_;
  mutable std::mutex stats_mutex_;
  ContextStats published_;
};

}  // namespace imprint::bridge

#pragma once
// The Context, on a host's device and on the CPU. Frame functions go to the FrameEngine.

#include <memory>
#include <string>

#include "engine-bridge/context.h"
#include "engine-bridge/frame/frame_engine.h"
#include "engine-bridge/frame/gpu_frame.h"
#include "engine-bridge/frame/gpu_issuers.h"
#include "engine-bridge/host/host_queue.h"
#include "engine-bridge/host/in_flight.h"

namespace imprint::bridge {

class ContextImpl final : public Context {
 public:
  static Result<std::unique_ptr<Context>> adopt(const ContextDescription& description);
  static std::unique_ptr<Context> on_cpu(const LogSink& log, const Budget& budget, const CpuThreads& threads);
  ~ContextImpl() override;

  vk::Device* vulkan() override { return device_.get(); }
  Runtime& runtime() override { return *runtime_; }
  vk::Queue* queue() override { return can_wait() ? queue_.get() : nullptr; }
  bool submits() const override { return submit_ != nullptr; }
  bool exclusive() const override { return exclusive_; }
  void stop_submitting() override;
  void finish() override;
  CompletedBy completed_by() const override;
  Result<HostSemaphore> semaphore() const override;
  std::string report() const override;
  FrameState frame_state() const override { return engine_->state(); }
  void give_up_issue() override { engine_->give_up_issue(); }

  Result<> run_now(const Commands& commands) override;
  Result<> run_now(Program& program) override;
  Result<> measure(Program& program) override;
  void set_budget(const Budget& budget) override { engine_->set_budget(budget); }
  Result<> drain(std::uint64_t timeout_ns) override;
  Result<> quiesce(std::uint64_t timeout_ns) override;
  Result<> resume() override;
  Result<> device_idle() override;
  Result<> check_running(const char* call) const override { return engine_->check_running(call); }
  void cancel(const Program& program) override { engine_->jobs().cancel(program); }
  void cancel(const Commands& commands) override { engine_->jobs().cancel(commands); }

  Result<std::shared_ptr<SharedBuffer>> import_buffer(const HostBuffer& host) override;
  Result<std::shared_ptr<SharedBuffer>> create_buffer(const SharedBufferRequest& request) override;
  void forget(const std::shared_ptr<SharedBuffer>& buffer) override;

  Result<> frame_begin(const FrameInfo& info) override { return engine_->begin(info, issuer()); }
  Result<> enqueue(FrameJob job) override { return engine_->enqueue(std::move(job)); }
  Result<> enqueue(const Commands& commands, JobCompleted on_complete) override {
    return engine_->enqueue(commands, std::move(on_complete), issuer());
  }
  Result<FrameEstimate> estimate() override { return engine_->estimate(); }
  Result<> acquire(const std::shared_ptr<SharedBuffer>& buffer) override;
  Result<> release(const std::shared_ptr<SharedBuffer>& buffer) override;
  using Context::submit;
  Result<> submit(const SubmitInfo& info) override;
  Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us,
                               const EnqueueMore& more) override;
  Result<> frame_end() override { return engine_->end(); }
  void enter_frame_call() override { engine_->enter_call(); }
  void leave_frame_call() override { engine_->leave_call(); }
  ContextStats stats() const override { return engine_->stats(); }

 private:
  ContextImpl() = default;
  Issuer& issuer() { return submit_ ? *submit_ : *record_; }
  bool can_wait() const { return submit_ && (!queue_ || !queue_->completes_by_frames()); }
  Result<> check_buffers(const char* call) const;
  std::string queue_report() const;
  std::string missing_report() const;

  // Destroyed from the last to the first. Null on the CPU: device_, in_flight_, queue_, gpu_frame_, record_.
  std::unique_ptr<vk::Device> device_;
  std::unique_ptr<InFlight> in_flight_;
  std::unique_ptr<HostQueue> queue_;  // null: record only
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<GpuFrame> gpu_frame_;
  std::unique_ptr<Issuer> submit_;  // null: record only
  std::unique_ptr<RecordIssuer> record_;
  std::unique_ptr<FrameEngine> engine_;

  bool exclusive_ = false;
  bool finished_ = false;
};

}  // namespace imprint::bridge

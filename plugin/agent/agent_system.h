#pragma once
// Everything behind one imp_context: the bridge to the host's device, the brains, and the frames that run
// them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compute/base/job_queue.h"
#include "compute/base/result.h"
#include "compute/vk/memory/memory_pool.h"
#include "engine-bridge/context.h"
#include "engine-bridge/own/standalone.h"
#include "plugin/agent/brain.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/keep/file_writer.h"
#include "plugin/agent/models/model.h"
#include "plugin/agent/tuning.h"

namespace imprint::agent {

struct AgentSystemStats {
  bridge::ContextStats context;
  vk::MemoryStats memory;
  std::uint64_t compiles = 0, allocations = 0, waits = 0;
  bool memory_pressure = false;
  std::size_t waiting_jobs = 0;
  std::uint64_t evicted_bytes = 0;  // that learning has given up until there is room
  std::uint64_t frame_compiles = 0, frame_allocations = 0, frame_waits = 0;  // since warmup returned
};

// The work that a frame's submit or record carries out.
enum class FrameScope : std::uint8_t {
  work,       // within the budget
  warmup,     // besides, every program once that has not run
  everything  // all that waits, whatever the budget, and the readback of saves
};

// The caller keeps the order of calls and threads (plugin/abi/gate.h).
class AgentSystem {
 public:
  // Compiles and writes files as jobs of vk::DeviceOptions::jobs, else on its own compile_threads. Errors:
  // those of bridge::Context::adopt, bridge::Standalone::open and JobQueue::create.
  static Result<std::unique_ptr<AgentSystem>> adopt(const bridge::ContextDescription& description);
  static Result<std::unique_ptr<AgentSystem>> open(const bridge::StandaloneOptions& options);
  static Result<std::unique_ptr<AgentSystem>> open_on_cpu(const vk::DeviceOptions& options,
                                                          const bridge::Budget& budget,
                                                          const CpuThreads& threads = {});  // without Vulkan
  ~AgentSystem();
  AgentSystem(const AgentSystem&) = delete;
  AgentSystem& operator=(const AgentSystem&) = delete;

  bridge::Context& context() { return *context_; }
  bool owns_device() const { return standalone_ != nullptr; }
  // Between Imprint's own device and the host's; null = none.
  bridge::DeviceLink* link() { return standalone_ ? standalone_->link() : nullptr; }
  JobQueue& jobs() { return *jobs_; }  // any thread
  Tuning& tuning() { return *tuning_; }
  // Any thread. Call when the device is lost, before the first caller learns of it. Imprint's threads finish
  // what they began on the device and begin nothing more. Waits a bounded time, because one of them may wait
  // for the caller.
  void stop_device_work();
  std::string report() const;
  AgentSystemStats stats() const;  // any thread

  // ---- create-time ----
  Result<std::shared_ptr<Brain>> add_brain(const BrainSpec& spec, const SharedTensors& shared = {});
  Result<std::shared_ptr<Brain>> add_policy(const PolicySpec& spec, const SharedTensors& shared = {});
  void remove_brain(const std::shared_ptr<Brain>& brain);  // waits for its files, not for the GPU
  Result<std::shared_ptr<Model>> add_model(const ModelSpec& spec);
  void remove_model(const std::shared_ptr<Model>& model);
  Result<> warmup(const std::function<void(float)>& progress);
  void set_budget(const bridge::Budget& budget);
  // Period of the copies in host memory; 0 = none. Before warmup, which allocates them.
  void set_host_copy_period(std::uint32_t frames) { host_copy_period_frames_ = frames; }
  Result<> quiesce(std::uint32_t timeout_ms) {
    return context_->quiesce(std::uint64_t{timeout_ms} * 1'000'000);
  }
  Result<> resume() { return context_->resume(); }
  void set_memory_cap(std::uint64_t bytes);  // below what is reserved: learning is evicted
  // Frees unused device memory. Returns the bytes.
  std::uint64_t trim();
  // Errors: unsupported (record only), not_ready (timeout), device_lost.
  Result<> drain(std::uint32_t timeout_ms);
  // Buffers that the host shares, on its device or on both: bridge::Context, bridge::DeviceLink. Errors:
  // theirs; unsupported (Imprint's own device shares no memory with the host's; importing to Imprint's own
  // device).
  Result<std::shared_ptr<bridge::SharedBuffer>> import_buffer(const bridge::HostBuffer& host);
  Result<std::shared_ptr<bridge::SharedBuffer>> create_buffer(const bridge::SharedBufferRequest& request);
  Result<bridge::HostSemaphore> semaphore();  // unsupported on Imprint's own device
  // See bridge::Context.
  Result<> device_idle();
  // Completes saves that can be completed, and waits for Imprint's own submissions. After an error this must
  // not be destroyed. Errors: wrong_state (recorded work may still run), the outcome of a save that is not on
  // disk (each is told once; a further call gives it up).
  Result<> close();

  // ---- frame thread ----
  Result<> frame_begin(const bridge::FrameInfo& info, double time_s);
  // Enqueues the frame's work so far and estimates it.
  Result<bridge::FrameEstimate> estimate();
  Result<> submit(const bridge::SubmitInfo& info, FrameScope scope = FrameScope::work);
  Result<> submit(std::uint32_t budget_us) { return submit(bridge::SubmitInfo{budget_us, {}, {}}); }
  Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us,
                               FrameScope scope = FrameScope::work);
  Result<> frame_end();

 private:
  AgentSystem(const LogSink& log, std::shared_ptr<JobQueue> jobs)
      : log_(log), jobs_(std::move(jobs)), files_(*jobs_) {}
  // Without a context; fills options.jobs.
  static Result<std::unique_ptr<AgentSystem>> create(vk::DeviceOptions& options,
                                                     const bridge::Budget& budget);

  std::string link_text() const;
  BrainServices services() {
    return {*context_, files_, clock_, host_copy_period_frames_, log_, memory_cap_bytes_};
  }
  Result<> check_frame(const bridge::FrameInfo& info, double time_s) const;
  Result<> enqueue_brains(FrameScope scope);
  bridge::EnqueueMore rest_of(FrameScope scope);
  bool record_runs() const {
    return any_record_ && !idle_since_record_ && (safe_frame_ == 0 || safe_frame_ < last_record_);
  }
  Result<> close_saves();
  Result<> run_programs_once();
  void count_frames_from_here();
  void recorded();
  void watch_silence();
  void watch_memory();
  Result<> warm_brains(const std::function<void(float)>& progress);

  LogSink log_;
  std::shared_ptr<JobQueue> jobs_;
  std::unique_ptr<bridge::Standalone> standalone_;  // Imprint's own device; owns context_
  std::unique_ptr<bridge::Context> adopted_;        // the host's device, or the CPU; is context_
  bridge::Context* context_ = nullptr;
  std::unique_ptr<Tuning> tuning_;
  FileWriter files_;
  FrameClock clock_;
  std::uint32_t host_copy_period_frames_ = 0;
  std::uint64_t memory_cap_bytes_ = 0;        // 0 = no cap
  bool may_learn_ = true;                     // a budget of 0 is inference only
  std::atomic<bool> memory_pressure_{false};  // learning pauses
  std::atomic<std::uint64_t> evicted_bytes_{0};
  std::uint64_t next_memory_check_ = 0;  // frame
  bool any_frame_ = false;
  bool any_record_ = false;  // or a submission whose completion only safe frames report
  bool idle_since_record_ = false;
  // For warnings to hosts that forget a part of the frame.
  std::uint32_t records_since_safe_ = 0, frames_since_issue_ = 0;
  std::uint64_t last_record_ = 0, safe_frame_ = 0;
  std::set<VkPipeline> ran_;                    // pipelines that ran once
  std::vector<std::shared_ptr<Brain>> brains_;  // in the order of creation
  std::vector<std::shared_ptr<Model>> models_;
  // The frame counters when warmup returned.
  std::atomic<std::uint64_t> base_compiles_{0}, base_allocations_{0}, base_waits_{0};
};

}  // namespace imprint::agent

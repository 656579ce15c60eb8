#pragma once
// The brains of one context, and the frames that pass over them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/base/job_queue.h"
#include "compute/base/result.h"
#include "compute/vk/memory_pool.h"
#include "engine-bridge/context.h"
#include "engine-bridge/own/standalone.h"
#include "plugin/agent/brain.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/keep/file_writer.h"
#include "plugin/agent/tuning.h"

namespace imprint::agent {

struct WorldStats {
  bridge::ContextStats context;
  vk::MemoryStats memory;
  std::uint64_t compiles = 0, allocations = 0, waits = 0;
  bool memory_pressure = false;
  std::size_t waiting_jobs = 0;
  std::uint64_t bytes_away = 0;  // that learning has given up, and takes again when there is room
  std::uint64_t frame_compiles = 0, frame_allocations = 0, frame_waits = 0;  // since warmup returned
};

// Order of calls and threads are the caller's to keep (plugin/abi/gate.h).
class World {
 public:
  // Compiles and writes files as jobs of vk::DeviceOptions::jobs, else on its compile_threads. Errors: those
  // of bridge::Context::adopt, bridge::Standalone::open and JobQueue::create.
  static Result<std::unique_ptr<World>> adopt(const bridge::ContextDescription& description);
  static Result<std::unique_ptr<World>> open(const bridge::StandaloneOptions& options);
  static Result<std::unique_ptr<World>> open_on_cpu(const vk::DeviceOptions& options,
                                                    const bridge::Budget& budget);  // without Vulkan
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  bridge::Context& context() { return *context_; }
  bool owns_device() const { return standalone_ != nullptr; }
  bridge::DeviceLink* link() {
    return standalone_ ? standalone_->link() : nullptr;
  }                                    // of our device with the host's
  JobQueue& jobs() { return *jobs_; }  // any thread
  Tuning& tuning() { return *tuning_; }
  // Any thread. The device was found lost, and the first is about to be told: what threads of ours had begun
  // on it comes to its end, and nothing follows. Bounded, for the case that one of them waits for who asks.
  void stand_still();
  std::string report() const;
  WorldStats stats() const;  // any thread

  // ---- create-time ----
  Result<std::shared_ptr<Brain>> add_brain(const BrainSpec& spec, const SharedTensors& shared = {});
  Result<std::shared_ptr<Brain>> add_policy(const PolicySpec& spec, const SharedTensors& shared = {});
  void remove_brain(const std::shared_ptr<Brain>& brain);  // waits for its files, not for the GPU
  Status warmup(const std::function<void(float)>& progress);
  void set_budget(const bridge::Budget& budget);
  void set_shadow_period(std::uint32_t frames) {
    shadow_period_frames_ = frames;
  }  // before warmup, which takes the memory
  Status quiesce(std::uint32_t timeout_ms) {
    return context_->quiesce(std::uint64_t{timeout_ms} * 1'000'000);
  }
  Status resume() { return context_->resume(); }
  void set_memory_cap(std::uint64_t bytes);  // below what is reserved: learning gives its memory up
  // Gives device memory back that nothing is in; the bytes.
  std::uint64_t trim();
  // Errors: unsupported (record only), not_ready (time over), device_lost.
  Status drain(std::uint32_t timeout_ms);
  // Shared with the host, on its device or on both: see bridge::Context and bridge::DeviceLink. Errors:
  // theirs; unsupported (a device of our own that has no memory in common with the host's; importing, with
  // any device of our own).
  Result<std::shared_ptr<bridge::SharedBuffer>> import_buffer(const bridge::HostBuffer& host);
  Result<std::shared_ptr<bridge::SharedBuffer>> create_buffer(const bridge::SharedBufferRequest& request);
  Result<bridge::HostSemaphore> semaphore();  // for the host's device: unsupported with one of our own
  // Waits for the GPU, as far as it is ours to wait for, and says whether this may be destroyed: wrong_state
  // when recorded work is not known to be complete.
  Status close();

  // ---- frame thread ----
  Status frame_begin(const bridge::FrameInfo& info, double time_s);
  // Of the frame's work so far; enqueues it.
  Result<bridge::FrameEstimate> estimate();
  Status submit(const bridge::SubmitInfo& info);
  Status submit(std::uint32_t budget_us) { return submit(bridge::SubmitInfo{budget_us, {}, {}}); }
  Result<std::uint32_t> record(VkCommandBuffer command_buffer, std::uint32_t budget_us);
  Status frame_end();

 private:
  World(const LogSink& log, std::shared_ptr<JobQueue> jobs)
      : log_(log), jobs_(std::move(jobs)), files_(*jobs_) {}
  static Result<std::unique_ptr<World>> create(
      vk::DeviceOptions& options, const bridge::Budget& budget);  // without a context; fills options.jobs

  std::string link_text() const;  // of a device beside the host's
  Surroundings surroundings() { return {*context_, files_, clock_, shadow_period_frames_, log_}; }
  Status enqueue_brains();
  void watch_memory();
  Status warm_brains(const std::function<void(float)>& progress);

  LogSink log_;
  std::shared_ptr<JobQueue> jobs_;
  std::unique_ptr<bridge::Standalone> standalone_;  // owns context_ when it is ours
  std::unique_ptr<bridge::Context> adopted_;        // or the processor's
  bridge::Context* context_ = nullptr;
  std::unique_ptr<Tuning> tuning_;
  FileWriter files_;
  FrameClock clock_;
  std::uint32_t shadow_period_frames_ = 0;
  bool may_learn_ = true;                     // a budget of 0 is inference only
  std::atomic<bool> memory_pressure_{false};  // learning pauses
  std::atomic<std::uint64_t> bytes_away_{0};
  std::uint64_t next_look_ = 0;  // frame
  bool any_frame_ = false;
  bool any_record_ = false;  // or submission that only safe frames tell about
  std::uint64_t last_record_ = 0, safe_frame_ = 0;
  std::vector<std::shared_ptr<Brain>> brains_;  // in the order of creation
  std::atomic<std::uint64_t> base_compiles_{0}, base_allocations_{0},
      base_waits_{0};  // of the frame counters, when warmup returned
};

}  // namespace imprint::agent

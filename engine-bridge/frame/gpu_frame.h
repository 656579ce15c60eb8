#pragma once
// Turns a frame's plan into command buffers that were recorded beforehand, with barriers, timestamps and
// changes of buffer owners between them. Both GPU issuers use one.

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/program/runtime.h"
#include "compute/vk/device.h"
#include "engine-bridge/frame/command_set.h"
#include "engine-bridge/frame/frame_jobs.h"
#include "engine-bridge/frame/frame_sync.h"
#include "engine-bridge/frame/gpu_timer.h"
#include "engine-bridge/frame/issuer.h"

namespace imprint::bridge {

class GpuFrame {
 public:
  // exclusive: the queue is Imprint's alone.
  static Result<std::unique_ptr<GpuFrame>> create(vk::Device& device, Runtime& runtime, bool exclusive);

  FrameSync& sync() { return *sync_; }
  Runtime& runtime() { return runtime_; }
  Result<> share(const std::shared_ptr<SharedBuffer>& buffer);  // create-time

  // ---- frame thread, in this order ----
  // Takes uploads of state as late as possible, so that everything written before is in.
  Result<> prepare(FrameWork& work, FrameJobs& jobs);
  void start_timing(FrameWork& work, FrameJobs& jobs, ContextStats& stats);
  // The slice's command buffers; valid until the next call.
  std::span<const VkCommandBuffer> assemble(const FrameWork& work, FrameJobs& jobs, std::size_t slice,
                                            VkCommandBufferLevel level);
  const char* label(const FrameWork& work, std::size_t slice) const;  // in captures
  // The assembled slice is with the GPU. submitted: semaphores went with it.
  void issued(FrameWork& work, FrameJobs& jobs, std::size_t slice, vk::Ticket ticket, bool submitted,
              ContextStats& stats);
  void refused(std::size_t slice);  // the assembled slice is not
  void stop_timing(vk::Ticket ticket);
  VkCommandBuffer timing_rehearsal() const { return timer_->rehearsal(); }

  // Corrects the costs of programs by the times of completed frames.
  void read_times(vk::Ticket complete, FrameJobs& jobs, ContextStats& stats);

 private:
  // A program's expected time in a section of a timed frame.
  struct Share {
    const Program* program = nullptr;
    std::uint32_t section = 0;
    float us = 0;
  };
  struct TimedFrame {
    std::uint64_t frame = 0;
    float budget_us = 0;
    bool immediate_is_known = true;  // its immediate work is programs only
    std::vector<Share> shares;
  };

  explicit GpuFrame(Runtime& runtime) : runtime_(runtime) {}
  bool has_immediate_work(const FrameWork& work) const {
    return work.immediate_count > 0 || uploads_.primary != VK_NULL_HANDLE;
  }
  static bool closes_frame(const FrameWork& work, std::size_t slice) {
    return work.closes_frame && slice + 1 == work.plan.slices.size();
  }
  void add_immediate(const FrameWork& work, FrameJobs& jobs, bool whole_slice, bool last,
                     VkCommandBufferLevel level);
  void add_steps(const FrameWork& work, FrameJobs& jobs, const Slice& slice, bool after_immediate, bool last,
                 VkCommandBufferLevel level);
  void add_step(const Step& step, FrameJobs& jobs, bool after_barrier, VkCommandBufferLevel level);

  // Destroyed from the last to the first.
  Runtime& runtime_;
  std::unique_ptr<GpuTimer> timer_;
  std::unique_ptr<CommandSet> commands_;
  std::unique_ptr<FrameSync> sync_;

  Commands uploads_;
  std::optional<std::uint32_t> timing_;  // the timer's entry for this plan
  std::uint32_t section_ = 0;            // the newest one of learn slices; 0 = none
  std::uint32_t section_before_ = 0;     // the same before the assembled slice
  std::vector<VkCommandBuffer> list_;
  std::array<TimedFrame, GpuTimer::kFrames> timed_;  // by the timer's entry
};

}  // namespace imprint::bridge

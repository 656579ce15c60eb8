#pragma once
// The two ways to a GPU: submissions to a queue, and the host's command buffer.

#include "engine-bridge/frame/gpu_frame.h"
#include "engine-bridge/frame/issuer.h"
#include "engine-bridge/host/host_queue.h"
#include "engine-bridge/host/in_flight.h"

namespace imprint::bridge {

class GpuIssuer : public Issuer {
 public:
  void begin_frame(const FrameInfo& info) override;
  Result<> prepare(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  vk::Ticket completed(FrameJobs& jobs, ContextStats& stats) override;
  Result<> check(const Commands& commands) const override;
  Result<> wait(std::uint64_t timeout_ns) override;
  Result<> run_now(const Commands& commands) override;
  Result<> run_now(Program& program) override;
  Result<std::vector<float>> measure(Program& program) override;

 protected:
  GpuIssuer(Traits traits, vk::Device& device, InFlight& in_flight, GpuFrame& frame)
      : Issuer(traits), device_(device), in_flight_(in_flight), frame_(frame) {}

  vk::Device& device_;
  InFlight& in_flight_;
  GpuFrame& frame_;
};

// One submission per slice.
class SubmitIssuer final : public GpuIssuer {
 public:
  SubmitIssuer(vk::Device& device, InFlight& in_flight, GpuFrame& frame, HostQueue& queue)
      : GpuIssuer({.on_frame_thread = false, .cuts_slices = true}, device, in_flight, frame), queue_(queue) {}
  Result<> issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  Result<> wait(std::uint64_t timeout_ns) override;
  Result<> run_now(const Commands& commands) override;
  Result<std::vector<float>> measure(Program& program) override;
  using GpuIssuer::run_now;

 private:
  Result<> submit_uploads();
  Result<> add_up(const FrameWork& work, FrameJobs& jobs, std::size_t index, vk::Ticket& ticket);

  HostQueue& queue_;
};

// One slice: the host's command buffer is not cut.
class RecordIssuer final : public GpuIssuer {
 public:
  RecordIssuer(vk::Device& device, InFlight& in_flight, GpuFrame& frame)
      : GpuIssuer({}, device, in_flight, frame) {}
  void set_command_buffer(VkCommandBuffer command_buffer) { command_buffer_ = command_buffer; }
  Result<> issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;

 private:
  VkCommandBuffer command_buffer_ = VK_NULL_HANDLE;  // of the current record call
};

}  // namespace imprint::bridge

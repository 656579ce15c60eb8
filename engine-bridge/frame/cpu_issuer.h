#pragma once
// Runs a frame's work on the frame thread, without Vulkan.

#include <chrono>
#include <memory>
#include <string>

#include "engine-bridge/frame/issuer.h"

namespace imprint::bridge {

class CpuIssuer final : public Issuer {
 public:
  CpuIssuer() : Issuer({.on_frame_thread = true, .cuts_slices = false}) {}

  void begin_frame(const FrameInfo&) override {}
  Status prepare(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  Status issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  vk::Ticket completed(FrameJobs&, ContextStats&) override { return ticket_; }
  Status check(const Commands& commands) const override;
  Status wait(std::uint64_t) override { return {}; }
  Status run_now(const Commands& commands) override;
  Status run_now(Program& program) override;
  Result<std::vector<float>> measure(Program& program) override;

 private:
  void run_step(const Step& step, FrameJobs& jobs, ContextStats& stats);

  vk::Ticket ticket_;  // of the newest plan; complete when issue returns
  std::chrono::steady_clock::time_point start_;
};

std::string cpu_report();

}  // namespace imprint::bridge

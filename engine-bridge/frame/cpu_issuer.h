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
  Result<> prepare(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  Result<> issue(FrameWork& work, FrameJobs& jobs, ContextStats& stats) override;
  vk::Ticket completed(FrameJobs&, ContextStats&) override { return ticket_; }
  Result<> check(const Commands& commands) const override;
  Result<> wait(std::uint64_t) override { return {}; }
  Result<> run_now(const Commands& commands) override;
  Result<> run_now(Program& program) override;
  Result<std::vector<float>> measure(Program& program) override;

 private:
  void run_step(const Step& step, FrameJobs& jobs, ContextStats& stats);

  vk::Ticket ticket_;  // of the newest plan; complete when issue returns
  std::chrono::steady_clock::time_point start_;
};

std::string cpu_report();

}  // namespace imprint::bridge

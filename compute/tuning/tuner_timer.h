#pragma once
// GPU time of one run of a program, between timestamps.

#include <memory>
#include <span>
#include <utility>

#include "compute/base/result.h"
#include "compute/program/runtime_impl.h"
#include "compute/tuning/clock_probe.h"
#include "compute/vk/queue.h"

namespace imprint::tuning {

class TuningTimer {
 public:
  // seconds: of measuring, all in all, of which it may take a share to let the clock rise. Errors:
  // unsupported (no timestamps), out_of_*_memory.
  static Result<std::unique_ptr<TuningTimer>> create(program::RuntimeImpl& runtime, vk::Queue& queue,
                                                     double seconds);
  ~TuningTimer();

  // Microseconds of a run of secondary commands: the least of `runs` submissions, of several in a row each
  // where one is short. Waits. The clock of a GPU falls while variants are compiled: it is let rise
  // (clock_probe.h), and since it may not rise to the end, only what runs in turns is compared.
  struct Times {
    double usual = 0, other = 0;
  };
  Result<double> time(VkCommandBuffer usual, std::uint32_t runs);
  Result<Times> compare(VkCommandBuffer usual, VkCommandBuffer other, std::uint32_t runs);
  std::uint64_t runs() const { return runs_; }  // submissions, without those that let the clock rise

 private:
  TuningTimer(program::RuntimeImpl& runtime, vk::Queue& queue, ClockProbe probe, double seconds)
      : runtime_(runtime), queue_(queue), probe_(std::move(probe)), seconds_(seconds) {}
  Status upload();
  Status raise_clock(double share);                                   // of all seconds, at most
  Result<double> run(VkCommandBuffer commands, std::uint32_t times);  // microseconds of one time
  Result<double> submit(std::span<const VkCommandBuffer> commands, std::uint32_t times);

  program::RuntimeImpl& runtime_;
  vk::Queue& queue_;
  ClockProbe probe_;
  double seconds_;
  vk::Handle<VkCommandPool> pool_;
  vk::Handle<VkQueryPool> queries_;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  std::uint64_t runs_ = 0;
};

}  // namespace imprint::tuning

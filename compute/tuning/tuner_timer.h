#pragma once
// Measures the GPU time of one run of a program with timestamps.

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
  // seconds: total measuring time; a share of it may go to raising the clock. Errors: unsupported (no
  // timestamps), out_of_*_memory.
  static Result<std::unique_ptr<TuningTimer>> create(program::RuntimeImpl& runtime, vk::Queue& queue,
                                                     double seconds);
  ~TuningTimer();

  // Microseconds of one run of secondary commands: the least of `runs` submissions. A short run repeats
  // several times per submission. Blocks.
  // A GPU's clock falls while variants are compiled, so each call first lets it rise (clock_probe.h). It may
  // not rise fully: compare only times of runs that alternate, from compare().
  struct Times {
    double usual = 0, other = 0;
  };
  Result<double> time(VkCommandBuffer usual, std::uint32_t runs);
  Result<Times> compare(VkCommandBuffer usual, VkCommandBuffer other, std::uint32_t runs);
  std::uint64_t runs() const { return runs_; }  // submissions, except those that raise the clock

 private:
  TuningTimer(program::RuntimeImpl& runtime, vk::Queue& queue, ClockProbe probe, double seconds)
      : runtime_(runtime), queue_(queue), probe_(std::move(probe)), seconds_(seconds) {}
  Result<> upload();
  Result<> raise_clock(double share);  // share: the most to spend, of all seconds
  Result<double> run(VkCommandBuffer commands, std::uint32_t times);  // microseconds of one repetition
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

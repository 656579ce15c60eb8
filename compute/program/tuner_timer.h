#pragma once
// GPU time of one run of a program, between timestamps.

#include <memory>

#include "compute/base/result.h"
#include "compute/program/runtime_impl.h"
#include "compute/vk/queue.h"

namespace imprint {

class TuningTimer {
 public:
  // Errors: unsupported (no timestamps), out_of_*_memory.
  static Result<std::unique_ptr<TuningTimer>> create(RuntimeImpl& runtime, vk::Queue& queue);
  ~TuningTimer();

  // Microseconds of a run of secondary commands: the least of `runs` submissions, of several in a row each where one is short. Waits. The clock of a
  // GPU falls while variants are compiled and takes a while to rise, so that only what runs in turns can be compared.
  struct Times { double usual = 0, other = 0; };
  Result<double> time(VkCommandBuffer usual, std::uint32_t runs);
  // usual_us: what `usual` is known to take when the clock is high.
  Result<Times> compare(VkCommandBuffer usual, VkCommandBuffer other, std::uint32_t runs, double usual_us);
  std::uint64_t submitted() const { return submitted_; }

 private:
  TuningTimer(RuntimeImpl& runtime, vk::Queue& queue) : runtime_(runtime), queue_(queue) {}
  Status upload();
  // How many runs are worth a submission, after as many as let the clock rise: until one takes no more than best_us, or time is over.
  Result<std::uint32_t> warm_up(VkCommandBuffer commands, double best_us);
  Result<double> submit(VkCommandBuffer commands, std::uint32_t in_a_row);   // microseconds of one

  RuntimeImpl& runtime_;
  vk::Queue& queue_;
  vk::Handle<VkCommandPool> pool_;
  vk::Handle<VkQueryPool> queries_;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  std::uint64_t submitted_ = 0;
};

}  // namespace imprint

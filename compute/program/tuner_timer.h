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

  // Microseconds of a run of these secondary commands: the least of `runs` submissions, of several in a row each where one is short. Waits.
  Result<double> time(VkCommandBuffer commands, std::uint32_t runs);
  std::uint64_t submitted() const { return submitted_; }

 private:
  TuningTimer(RuntimeImpl& runtime, vk::Queue& queue) : runtime_(runtime), queue_(queue) {}
  Result<double> submit(VkCommandBuffer commands, std::uint32_t in_a_row);   // microseconds of one

  RuntimeImpl& runtime_;
  vk::Queue& queue_;
  vk::Handle<VkCommandPool> pool_;
  vk::Handle<VkQueryPool> queries_;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  std::uint64_t submitted_ = 0;
};

}  // namespace imprint

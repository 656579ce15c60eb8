#pragma once
// The thread that submits to a queue of ours alone, so that the game's frame does not pay for it.

#include <vulkan/vulkan_core.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"
#include "engine-bridge/host/in_flight.h"
#include "engine-bridge/host/submission.h"

namespace imprint::bridge {

// In the order of posting. What the queue refuses is tried again until it is taken, so that nothing posted is
// lost; until then nothing more is accepted. A lost device ends it. One other thread posts.
class SubmitThread {
 public:
  using Submit = std::function<VkResult(Submission&)>;

  // Device and order outlive it. Errors: out_of_host_memory (no thread).
  static Result<std::unique_ptr<SubmitThread>> start(vk::Device& device, InFlight& in_flight, Submit submit);
  ~SubmitThread();  // submits what it can still, once, and ends
  SubmitThread(const SubmitThread&) = delete;
  SubmitThread& operator=(const SubmitThread&) = delete;

  // Errors: out_of_host_memory, out_of_device_memory (the queue refused the submission before, which is being
  // tried again).
  Status accepts() const;
  Submission& next();  // to be filled, then post()
  void post();
  void settle();  // returns when all that was posted is submitted, or refused
  // After the device was found lost, and before anybody is told: a submission that is on its way comes back,
  // and none follows. Any thread. Bounded, for the case that the host's lock is with who asks.
  void stand_still();

 private:
  SubmitThread(vk::Device& device, InFlight& in_flight, Submit submit);
  void work();
  void finish(VkResult result);  // with the lock

  vk::Device& device_;
  InFlight& in_flight_;
  const Submit submit_;

  mutable std::mutex mutex_;
  std::condition_variable posted_, settled_;
  std::vector<std::unique_ptr<Submission>>
      ring_;  // [first_, first_ + count_) wait, modulo its size; grows when it is full
  std::size_t first_ = 0, count_ = 0;
  VkResult refusal_ = VK_SUCCESS;
  bool submitting_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace imprint::bridge

#pragma once
// The thread that submits to an exclusive queue, so that the game's frame thread does not pay for it.

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

// Submits in the order of post(). A refused submission is retried until the queue takes it; until then
// nothing more is accepted. A lost device ends it. One other thread posts.
class SubmitThread {
 public:
  using Submit = std::function<VkResult(Submission&)>;

  // `device` and `in_flight` outlive it. Errors: out_of_host_memory (no thread).
  static Result<std::unique_ptr<SubmitThread>> start(vk::Device& device, InFlight& in_flight, Submit submit);
  ~SubmitThread();  // tries once to submit the rest, then ends
  SubmitThread(const SubmitThread&) = delete;
  SubmitThread& operator=(const SubmitThread&) = delete;

  // Errors: out_of_host_memory, out_of_device_memory (the queue refused an earlier submission, which is being
  // retried).
  Result<> check_accepting() const;
  Submission& next();  // fill it, then call post()
  void post();
  void wait_until_submitted();  // returns when everything posted is submitted or refused
  // Call on a lost device before the host is told. On return the running submission has ended and no other
  // follows. Any thread. Waits at most 200 ms, in case the caller holds the host's lock.
  void stop_submitting();

 private:
  SubmitThread(vk::Device& device, InFlight& in_flight, Submit submit);
  void work();
  void finish(VkResult result);  // holds mutex_

  vk::Device& device_;
  InFlight& in_flight_;
  const Submit submit_;

  mutable std::mutex mutex_;
  std::condition_variable posted_, changed_;
  // Entries [first_, first_ + count_), modulo the size, wait. Grows when it is full.
  std::vector<std::unique_ptr<Submission>> ring_;
  std::size_t first_ = 0, count_ = 0;
  VkResult refusal_ = VK_SUCCESS;
  bool submitting_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace imprint::bridge

#include "engine-bridge/host/submit_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "compute/base/text.h"

namespace imprint::bridge {
namespace {

constexpr std::size_t kRing = 64;
constexpr std::chrono::milliseconds kRetry{2};
constexpr std::chrono::milliseconds kStopTimeout{200};

}  // namespace

SubmitThread::SubmitThread(vk::Device& device, InFlight& in_flight, Submit submit)
    : device_(device), in_flight_(in_flight), submit_(std::move(submit)) {
  for (std::size_t i = 0; i < kRing; ++i) ring_.push_back(std::make_unique<Submission>());
}

Result<std::unique_ptr<SubmitThread>> SubmitThread::start(vk::Device& device, InFlight& in_flight,
                                                          Submit submit) {
  std::unique_ptr<SubmitThread> made(new SubmitThread(device, in_flight, std::move(submit)));
  try {
    made->thread_ = std::thread([self = made.get()] { self->work(); });
  } catch (const std::system_error& error) {
    return make_error(ErrorCode::out_of_host_memory,
                      text("submit thread: the system refused it: ", error.what()));
  }
  return made;
}

SubmitThread::~SubmitThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<> SubmitThread::check_accepting() const {
  const std::lock_guard lock(mutex_);
  if (refusal_ == VK_SUCCESS) return {};
  Error error = vk::vulkan_error(device_, "vkQueueSubmit", refusal_);
  error.message += ": the queue refused an earlier submission, which is being tried again";
  return error;
}

Submission& SubmitThread::next() {
  const std::lock_guard lock(mutex_);
  if (count_ == ring_.size()) {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    first_ = 0;
    for (std::size_t i = 0; i < kRing; ++i) ring_.push_back(std::make_unique<Submission>());
  }
  return *ring_[(first_ + count_) % ring_.size()];
}

void SubmitThread::post() {
  {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  posted_.notify_one();
}

void SubmitThread::wait_until_submitted() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return count_ == 0 || refusal_ != VK_SUCCESS; });
}

void SubmitThread::stop_submitting() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kStopTimeout, [&] { return !submitting_; });
}

void SubmitThread::work() {
  pthread_setname_np(pthread_self(), "imprint-submit");
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return stop_ || count_ > 0; });
    if (count_ == 0) return;
    Submission& oldest = *ring_[first_];
    submitting_ = !device_.lost();  // read under the lock that stop_submitting takes
    lock.unlock();
    const VkResult result = submitting_ ? submit_(oldest) : VK_ERROR_DEVICE_LOST;
    if (result == VK_SUCCESS) in_flight_.delivered(oldest.ticket());
    if (result == VK_ERROR_DEVICE_LOST) {
      vk::vulkan_error(device_, "vkQueueSubmit", result);  // marks it
      in_flight_.wake();
    }
    lock.lock();
    submitting_ = false;
    finish(result);
    if (refusal_ == VK_SUCCESS) continue;
    if (stop_) return;
    posted_.wait_for(lock, kRetry, [&] { return stop_; });
  }
}

void SubmitThread::finish(VkResult result) {
  const bool over = result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST;
  refusal_ = over ? VK_SUCCESS : result;
  if (over) {
    first_ = (first_ + 1) % ring_.size();
    --count_;
  }
  changed_.notify_all();
}

}  // namespace imprint::bridge

#include "engine-bridge/host/in_flight.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "compute/base/text.h"
#include "engine-bridge/host/lost_device.h"

namespace imprint::bridge {

Result<std::unique_ptr<InFlight>> InFlight::create(vk::Device& device) {
  std::unique_ptr<InFlight> in_flight(new InFlight(device));
  in_flight->points_.reserve(256);
  in_flight->free_fences_.reserve(64);
  in_flight->all_fences_.reserve(64);
  if (device.capabilities().timeline_semaphore) {
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
    const VkResult result = device.functions().vkCreateSemaphore(
        device.handle(), &info, device.allocation_callbacks(), &in_flight->timeline_);
    if (result != VK_SUCCESS) return vk::vulkan_error(device, "vkCreateSemaphore", result);
  }
  return in_flight;
}

InFlight::~InFlight() {
  const vk::Functions& f = device_.functions();
  for (const VkFence fence : all_fences_)
    f.vkDestroyFence(device_.handle(), fence, device_.allocation_callbacks());
  if (timeline_) f.vkDestroySemaphore(device_.handle(), timeline_, device_.allocation_callbacks());
}

Result<VkFence> InFlight::take_fence() {
  const std::lock_guard lock(mutex_);
  if (free_fences_.empty()) poll_locked();
  if (device_.lost()) return lost_device_error("submit");
  const vk::Functions& f = device_.functions();
  if (!free_fences_.empty()) {
    const VkFence fence = free_fences_.back();
    const VkResult result = f.vkResetFences(device_.handle(), 1, &fence);
    if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkResetFences", result);
    free_fences_.pop_back();
    return fence;
  }
  // A new fence costs less than a wait. The pool stops growing at the number of submissions in flight.
  VkFence fence = VK_NULL_HANDLE;
  const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  const VkResult result = f.vkCreateFence(device_.handle(), &info, device_.allocation_callbacks(), &fence);
  if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkCreateFence", result);
  all_fences_.push_back(fence);
  return fence;
}

void InFlight::give_back(VkFence fence) {
  const std::lock_guard lock(mutex_);
  free_fences_.push_back(fence);
}

void InFlight::submitted(vk::Ticket ticket, VkFence fence) {
  const std::lock_guard lock(mutex_);
  points_.push_back({ticket, fence, 0, false});
}

void InFlight::posted(vk::Ticket ticket, VkFence fence) {
  const std::lock_guard lock(mutex_);
  points_.push_back({.ticket = ticket, .fence = fence, .posted = true});
}

void InFlight::delivered(vk::Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    const auto point = std::ranges::find(points_.begin() + static_cast<std::ptrdiff_t>(first_), points_.end(),
                                         ticket, &Point::ticket);
    if (point != points_.end()) point->posted = false;
  }
  delivered_.notify_all();
}

void InFlight::wake() {
  const std::lock_guard lock(mutex_);
  delivered_.notify_all();
}

bool InFlight::wait_for_delivery(vk::Ticket ticket, std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(mutex_);
  return delivered_.wait_until(lock, end, [&] {
    const auto point = std::ranges::find(points_.begin() + static_cast<std::ptrdiff_t>(first_), points_.end(),
                                         ticket, &Point::ticket);
    return device_.lost() || point == points_.end() || !point->posted;
  });
}

void InFlight::recorded(vk::Ticket ticket, std::uint64_t frame) {
  const std::lock_guard lock(mutex_);
  points_.push_back({ticket, VK_NULL_HANDLE, frame, true});
}

void InFlight::submitted_by_frame(vk::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  points_.push_back({ticket, VK_NULL_HANDLE, frame_, true});
}

void InFlight::begin_frame(std::uint64_t frame) {
  const std::lock_guard lock(mutex_);
  frame_ = frame;
}

bool InFlight::oldest_needs_safe_frame() {
  const std::lock_guard lock(mutex_);
  return first_ < points_.size() && points_[first_].recorded;
}

void InFlight::set_safe_frame(std::uint64_t frame) {
  const std::lock_guard lock(mutex_);
  safe_frame_ = std::max(safe_frame_, frame);
}

void InFlight::set_device_idle() {
  const std::lock_guard lock(mutex_);
  for (Point& point : points_) point.idle_since = true;
}

vk::Ticket InFlight::poll() {
  const std::lock_guard lock(mutex_);
  return poll_locked();
}

vk::Ticket InFlight::poll_locked() {
  const vk::Functions& f = device_.functions();
  std::uint64_t counter = 0;
  bool counter_known = false;
  while (first_ < points_.size() && !device_.lost()) {
    const Point& point = points_[first_];
    bool complete = false;
    if (point.posted) break;
    if (point.recorded) {
      complete = point.idle_since || (safe_frame_ > 0 && point.frame <= safe_frame_);
    } else if (point.fence) {
      const VkResult result = f.vkGetFenceStatus(device_.handle(), point.fence);
      complete = result == VK_SUCCESS;
      if (result < 0) vk::vulkan_error(device_, "vkGetFenceStatus", result);
      if (complete) free_fences_.push_back(point.fence);
    } else {
      if (!counter_known) {
        const VkResult result = f.vkGetSemaphoreCounterValue(device_.handle(), timeline_, &counter);
        if (result < 0) vk::vulkan_error(device_, "vkGetSemaphoreCounterValue", result);
        counter_known = true;
      }
      complete = point.ticket.value <= counter;
    }
    if (!complete) break;
    complete_ = point.ticket;
    ++first_;
  }
  if (first_ == points_.size()) {
    points_.clear();
    first_ = 0;
  } else if (first_ >= 128) {
    points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  return complete_;
}

InFlight::Point InFlight::next_to_wait_for(vk::Ticket ticket) const {
  Point next = points_[first_];
  if (next.recorded || next.fence || next.posted) return next;
  for (std::size_t i = first_;
       i < points_.size() && !points_[i].recorded && !points_[i].posted && points_[i].ticket <= ticket; ++i)
    next = points_[i];
  return next;
}

Result<> InFlight::wait_for(const Point& point, std::uint64_t left_ns, std::uint64_t timeout_ns) {
  if (point.posted) {
    const std::chrono::nanoseconds left(std::min<std::uint64_t>(left_ns, 1ull << 60));
    if (wait_for_delivery(point.ticket, std::chrono::steady_clock::now() + left)) return {};
    return make_error(ErrorCode::not_ready, text("wait: the queue has not taken all submissions within ",
                                                 timeout_ns / 1000000, " ms."));
  }
  const vk::Functions& f = device_.functions();
  VkResult result = VK_SUCCESS;
  const char* call = nullptr;
  if (point.fence) {
    call = "vkWaitForFences";
    result = f.vkWaitForFences(device_.handle(), 1, &point.fence, VK_TRUE, left_ns);
  } else {
    call = "vkWaitSemaphores";
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline_;
    info.pValues = &point.ticket.value;
    result = f.vkWaitSemaphores(device_.handle(), &info, left_ns);
  }
  if (result == VK_TIMEOUT)
    return make_error(ErrorCode::not_ready,
                      text("wait: the GPU has not finished within ", timeout_ns / 1000000, " ms."));
  if (result != VK_SUCCESS) return vk::vulkan_error(device_, call, result);
  return {};
}

Result<> InFlight::wait(vk::Ticket ticket, std::uint64_t timeout_ns) {
  using std::chrono::steady_clock;
  const steady_clock::time_point start = steady_clock::now();
  bool counted = false;
  for (;;) {
    if (device_.lost()) return lost_device_error("wait");
    Point next;
    {
      const std::lock_guard lock(mutex_);
      if (poll_locked() >= ticket) return {};
      if (device_.lost()) continue;
      if (first_ == points_.size())
        return make_error(ErrorCode::invalid_argument,
                          text("wait: ticket ", ticket.value, " belongs to nothing submitted or recorded."));
      next = next_to_wait_for(ticket);
    }
    if (next.recorded)
      return make_error(
          ErrorCode::not_ready,
          text("wait: work recorded in frame ", next.frame, " comes first, and safe_frame has not ",
               "reached it. Call frame_begin with safe_frame ", next.frame,
               " or above, or wait for the device and call context_device_idle."));
    if (!counted) {
      ++device_.counters().waits;
      if (device_.counters().on_frame()) ++device_.counters().frame_waits;
      counted = true;
    }
    const auto spent = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now() - start).count());
    const std::uint64_t left = timeout_ns > spent ? timeout_ns - spent : 0;
    IMPRINT_CHECK(wait_for(next, left, timeout_ns));
  }
}

}  // namespace imprint::bridge

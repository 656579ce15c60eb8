#include "engine-bridge/host/in_flight.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

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
  if (device_.lost()) return make_error(ErrorCode::device_lost, "submit: the device was lost");
  const vk::Functions& f = device_.functions();
  if (!free_fences_.empty()) {
    const VkFence fence = free_fences_.back();
    const VkResult result = f.vkResetFences(device_.handle(), 1, &fence);
    if (result != VK_SUCCESS) return vk::vulkan_error(device_, "vkResetFences", result);
    free_fences_.pop_back();
    return fence;
  }
  // More fences are cheaper than waiting for one: the number settles at the submissions that the host keeps
  // in flight.
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
  points_.push_back({ticket, fence, 0, false, true});
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

void InFlight::frame(std::uint64_t frame) {
  const std::lock_guard lock(mutex_);
  frame_ = frame;
}

bool InFlight::recorded_in_front() {
  const std::lock_guard lock(mutex_);
  return first_ < points_.size() && points_[first_].recorded;
}

void InFlight::safe_frame(std::uint64_t frame) {
  const std::lock_guard lock(mutex_);
  safe_frame_ = std::max(safe_frame_, frame);
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
      complete = safe_frame_ > 0 && point.frame <= safe_frame_;
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

Status InFlight::wait(vk::Ticket ticket, std::uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const vk::Functions& f = device_.functions();
  bool counted = false;
  for (;;) {
    if (device_.lost()) return make_error(ErrorCode::device_lost, "wait: the device was lost");
    Point front;
    {
      const std::lock_guard lock(mutex_);
      if (poll_locked() >= ticket) return {};
      if (device_.lost()) continue;
      if (first_ == points_.size()) {
        return make_error(ErrorCode::invalid_argument, "wait: ticket " + std::to_string(ticket.value) +
                                                           " belongs to nothing submitted or recorded");
      }
      front = points_[first_];
      if (!front.recorded && !front.fence && !front.posted) {
        // One wait for the newest submission up to the ticket, as far as no recorded work stands between.
        for (std::size_t i = first_;
             i < points_.size() && !points_[i].recorded && !points_[i].posted && points_[i].ticket <= ticket;
             ++i)
          front = points_[i];
      }
    }
    if (front.recorded) {
      return make_error(
          ErrorCode::not_ready,
          "wait: work recorded in frame " + std::to_string(front.frame) +
              " stands before it; the host has not yet reported that frame as safe (FrameInfo::safe_frame)");
    }
    if (!counted) {
      ++device_.counters().waits;
      if (device_.counters().on_frame()) ++device_.counters().frame_waits;
      counted = true;
    }
    const auto spent = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    const std::uint64_t left = timeout_ns > spent ? timeout_ns - spent : 0;
    if (front.posted) {
      if (wait_for_delivery(front.ticket, Clock::now() + std::chrono::nanoseconds(
                                                             std::min<std::uint64_t>(left, 1ull << 60))))
        continue;
      return make_error(ErrorCode::not_ready, "wait: the queue has not taken all submissions within " +
                                                  std::to_string(timeout_ns / 1000000) + " ms");
    }
    VkResult result = VK_SUCCESS;
    const char* call = nullptr;
    if (front.fence) {
      call = "vkWaitForFences";
      result = f.vkWaitForFences(device_.handle(), 1, &front.fence, VK_TRUE, left);
    } else {
      call = "vkWaitSemaphores";
      VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
      info.semaphoreCount = 1;
      info.pSemaphores = &timeline_;
      info.pValues = &front.ticket.value;
      result = f.vkWaitSemaphores(device_.handle(), &info, left);
    }
    if (result == VK_TIMEOUT) {
      return make_error(ErrorCode::not_ready, "wait: the GPU has not finished within " +
                                                  std::to_string(timeout_ns / 1000000) + " ms");
    }
    if (result != VK_SUCCESS) return vk::vulkan_error(device_, call, result);
  }
}

}  // namespace imprint::bridge

#pragma once
// Work that the GPU has not finished, in the order of its tickets. A timeline value or a fence completes a
// submission; the host's safe frame completes work recorded into its command buffers. A ticket is complete
// when everything up to it is, so the oldest entry decides.

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/base/result.h"
#include "compute/vk/device.h"

namespace imprint::bridge {

// One thread adds work and waits. Any thread may call poll(). The submit thread calls delivered() and wake().
class InFlight {
 public:
  // Uses a timeline semaphore where the device has them, else a pool of fences that grows on demand.
  static Result<std::unique_ptr<InFlight>> create(vk::Device& device);
  ~InFlight();  // does not wait
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  VkSemaphore timeline() const { return timeline_; }  // null: fences
  // An unsignalled fence. Pass it to submitted() or posted(), or give it back.
  Result<VkFence> take_fence();
  void give_back(VkFence fence);

  // Submitted. Without a fence it signals the timeline with the ticket's value.
  void submitted(vk::Ticket ticket, VkFence fence);
  // Another thread will submit it. That thread calls delivered() in the order of tickets.
  void posted(vk::Ticket ticket, VkFence fence);
  void delivered(vk::Ticket ticket);
  void wake();  // waiting threads look again: the device was lost
  // Recorded into a command buffer of the host: complete when the frame is safe.
  void recorded(vk::Ticket ticket, std::uint64_t frame);
  // Submitted without fence or timeline: complete when the current frame is safe.
  void submitted_by_frame(vk::Ticket ticket);
  void begin_frame(std::uint64_t frame);
  void set_safe_frame(std::uint64_t frame);
  void set_device_idle();  // all that was recorded so far is complete
  bool oldest_needs_safe_frame();

  vk::Ticket poll();  // newest ticket up to which everything is complete; never blocks

  // Blocks until the ticket is complete. Errors: not_ready (time over, or recorded work whose frame the host
  // has not reported as safe: waiting cannot end that), device_lost.
  Result<> wait(vk::Ticket ticket, std::uint64_t timeout_ns);

 private:
  struct Point {
    vk::Ticket ticket;
    VkFence fence = VK_NULL_HANDLE;
    std::uint64_t frame = 0;
    bool recorded = false;
    bool idle_since = false;  // the device was idle after it was recorded
    bool posted = false;      // not submitted yet
  };

  explicit InFlight(vk::Device& device) : device_(device) {}
  vk::Ticket poll_locked();
  // The point that a wait for the ticket waits for first: the oldest entry, or the newest of several timeline
  // values.
  Point next_to_wait_for(vk::Ticket ticket) const;
  Result<> wait_for(const Point& point, std::uint64_t left_ns, std::uint64_t timeout_ns);
  bool wait_for_delivery(vk::Ticket ticket, std::chrono::steady_clock::time_point end);

  vk::Device& device_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::condition_variable delivered_;
  std::vector<Point> points_;  // in order; [first_, end) is outstanding
  std::size_t first_ = 0;
  std::vector<VkFence> free_fences_;  // complete, not yet reset
  std::vector<VkFence> all_fences_;
  std::uint64_t frame_ = 0, safe_frame_ = 0;
  vk::Ticket complete_;
};

}  // namespace imprint::bridge

#pragma once
// Work that the GPU has not finished, in the order of its tickets: submissions of ours (known by a timeline
// semaphore or a fence each) and work recorded into the host's command buffers (known when the host reports
// its frame as safe). A ticket is complete when everything up to it is, also where both kinds are mixed: so
// the front of the order decides.

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

// One thread notes and waits; poll() is for any thread, delivered() and wake() for one that submits.
class InFlight {
 public:
  // A timeline semaphore where the device has them, else fences made as they are needed and used again.
  static Result<std::unique_ptr<InFlight>> create(vk::Device& device);
  ~InFlight();  // does not wait
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  VkSemaphore timeline() const { return timeline_; }  // null: fences
  Result<VkFence> take_fence();  // unsignalled, to be passed to submitted() or given back
  void give_back(VkFence fence);

  void submitted(vk::Ticket ticket,
                 VkFence fence);  // fence null: signals the timeline with the ticket's value
  // The same by another thread: first that it will be, then, on that thread and in the order of tickets, that
  // it was.
  void posted(vk::Ticket ticket, VkFence fence);
  void delivered(vk::Ticket ticket);
  void wake();  // whoever waits looks again: the device was lost
  void recorded(vk::Ticket ticket, std::uint64_t frame);
  void submitted_by_frame(
      vk::Ticket ticket);           // no fence, no timeline: complete when the frame under way is safe
  void frame(std::uint64_t frame);  // begins
  void safe_frame(std::uint64_t frame);
  bool recorded_in_front();  // what is oldest waits for a safe frame

  vk::Ticket poll();  // newest ticket up to which all is complete; never blocks

  // Blocks until the ticket is complete. Errors: not_ready (time over; or recorded work whose frame the host
  // has not reported as safe, which no wait of ours can end), device_lost.
  Status wait(vk::Ticket ticket, std::uint64_t timeout_ns);

 private:
  struct Point {
    vk::Ticket ticket;
    VkFence fence = VK_NULL_HANDLE;
    std::uint64_t frame = 0;
    bool recorded = false;
    bool posted = false;  // not submitted yet
  };

  explicit InFlight(vk::Device& device) : device_(device) {}
  vk::Ticket poll_locked();
  bool wait_for_delivery(vk::Ticket ticket, std::chrono::steady_clock::time_point end);

  vk::Device& device_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::condition_variable delivered_;
  std::vector<Point> points_;  // in order; [first_, end) outstanding
  std::size_t first_ = 0;
  std::vector<VkFence> free_fences_;  // complete, not yet reset
  std::vector<VkFence> all_fences_;
  std::uint64_t frame_ = 0, safe_frame_ = 0;
  vk::Ticket complete_;
};

}  // namespace imprint::bridge

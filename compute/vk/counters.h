#pragma once
// Events counted since a device was adopted.

#include <atomic>
#include <cstdint>
#include <thread>

namespace imprint::vk {

// Any thread. The frame_* counters count the frame thread's calls inside a frame.
struct Counters {
  std::atomic<std::uint64_t> compiles{0};     // pipelines created
  std::atomic<std::uint64_t> allocations{0};  // vkAllocateMemory
  std::atomic<std::uint64_t> waits{0};        // blocking waits for the GPU
  std::atomic<std::uint64_t> submits{0};
  std::atomic<std::uint64_t> frame_compiles{0};
  std::atomic<std::uint64_t> frame_allocations{0};
  std::atomic<std::uint64_t> frame_waits{0};

  void enter_frame() { frame_thread.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void leave_frame() { frame_thread.store({}, std::memory_order_relaxed); }
  bool on_frame() const { return frame_thread.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> frame_thread;  // set while a frame call runs; one frame thread per device
};

}  // namespace imprint::vk

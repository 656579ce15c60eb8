#pragma once
// A mutex for the few objects that a process has one of: nothing to construct when a library is loaded and
// nothing to destroy when it goes, with every compiler (std::mutex is not so everywhere). Held for moments
// only.

#include <atomic>

namespace imprint {

class ProcessMutex {
 public:
  constexpr ProcessMutex() = default;
  ProcessMutex(const ProcessMutex&) = delete;
  ProcessMutex& operator=(const ProcessMutex&) = delete;

  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) locked_.wait(true, std::memory_order_relaxed);
  }
  void unlock() {
    locked_.store(false, std::memory_order_release);
    locked_.notify_one();
  }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace imprint

#pragma once
// A mutex for objects that exist once per process. Loading a library constructs nothing and unloading it
// destroys nothing, with every compiler. std::mutex does not guarantee that. Hold it only for moments.

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

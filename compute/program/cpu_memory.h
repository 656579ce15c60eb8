#pragma once
// Counts the bytes that the variables and programs of one CPU runtime hold, up to a cap.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "compute/base/result.h"
#include "compute/base/text.h"

namespace imprint::program {

// Thread-safe.
class CpuMemory {
 public:
  explicit CpuMemory(std::uint64_t cap_bytes) : cap_(cap_bytes) {}

  // 0: no cap. A lower cap frees nothing that is already held.
  void set_cap(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
  }
  std::uint64_t free_bytes() const {
    const std::lock_guard lock(mutex_);
    return free();
  }

 private:
  friend class CpuReservation;
  std::uint64_t free() const { return cap_ == 0 ? UINT64_MAX - held_ : cap_ - std::min(cap_, held_); }

  mutable std::mutex mutex_;
  std::uint64_t cap_, held_ = 0;
};

// A reservation of CpuMemory bytes; the destructor returns them.
class CpuReservation {
 public:
  CpuReservation() = default;
  // Errors: out_of_device_memory, with `what`, the bytes and the cap.
  static Result<CpuReservation> make(std::shared_ptr<CpuMemory> memory, std::uint64_t bytes,
                                     const std::string& what) {
    const std::lock_guard lock(memory->mutex_);
    if (bytes > memory->free())
      return make_error(ErrorCode::out_of_device_memory,
                        text(what, ": found ", bytes, " bytes, expected at most ", memory->free(),
                             ", which the memory cap of ", memory->cap_, " leaves"));
    memory->held_ += bytes;
    CpuReservation made;
    made.memory_ = std::move(memory);
    made.bytes_ = bytes;
    return made;
  }
  CpuReservation(CpuReservation&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  CpuReservation& operator=(CpuReservation&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CpuReservation() {
    if (!memory_) return;
    const std::lock_guard lock(memory_->mutex_);
    memory_->held_ -= bytes_;
  }

 private:
  std::shared_ptr<CpuMemory> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace imprint::program

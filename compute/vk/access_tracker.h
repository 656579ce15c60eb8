#pragma once
// Finds the dispatches that need a barrier before them, from the ranges that they declare to read and write.
// Pure arithmetic.

#include <cstdint>
#include <span>
#include <vector>

namespace imprint::vk {

// A half-open range of one buffer, in elements or bytes. All accesses of a buffer use the same unit.
struct Access {
  std::uint32_t buffer = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool write = false;

  bool operator==(const Access&) const = default;
};

// Keeps the accesses since the last barrier. One global memory barrier orders everything before it against
// everything after it, so one barrier clears the list.
class AccessTracker {
 public:
  // Records a dispatch's accesses. True when it needs a barrier first: it reads something written since the
  // last barrier, or writes something read or written since. The caller then records the barrier, which
  // counts as the last one.
  bool dispatch(std::span<const Access> accesses);

  // For a barrier that the caller records for another reason.
  void barrier() { since_barrier_.clear(); }

 private:
  std::vector<Access> since_barrier_;  // each once: programs declare few different ranges
};

}  // namespace imprint::vk

#pragma once
// Which dispatches need a barrier between them, from the ranges they declare to read and write. Pure
// arithmetic.

#include <cstdint>
#include <span>
#include <vector>

namespace imprint::vk {

// A half-open range of elements or bytes of one buffer (any unit, as long as one buffer keeps to one).
struct Access {
  std::uint32_t buffer = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool write = false;
};

// Keeps the accesses since the last barrier. One barrier orders everything before it against everything after
// it (a global memory barrier), so a hazard with any of them asks for one and clears the list.
class AccessTracker {
 public:
  // Notes a dispatch's accesses. True when a barrier has to stand before it: a read of something written
  // since the last barrier, or a write of something read or written since.
  bool dispatch(std::span<const Access> accesses);

  void barrier() { since_barrier_.clear(); }

 private:
  std::vector<Access> since_barrier_;
};

}  // namespace imprint::vk

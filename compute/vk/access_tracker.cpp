#include "compute/vk/access_tracker.h"

#include <algorithm>

namespace imprint::vk {
namespace {

bool conflict(const Access& a, const Access& b) {
  return a.buffer == b.buffer && (a.write || b.write) && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

}  // namespace

bool AccessTracker::dispatch(std::span<const Access> accesses) {
  const bool hazard = std::ranges::any_of(accesses, [&](const Access& access) {
    return std::ranges::any_of(since_barrier_,
                               [&](const Access& earlier) { return conflict(earlier, access); });
  });
  if (hazard) since_barrier_.clear();
  since_barrier_.insert(since_barrier_.end(), accesses.begin(), accesses.end());
  return hazard;
}

}  // namespace imprint::vk

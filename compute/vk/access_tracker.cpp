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
  for (const Access& access : accesses)
    if (std::ranges::find(since_barrier_, access) == since_barrier_.end()) since_barrier_.push_back(access);
  return hazard;
}

}  // namespace imprint::vk

#include "engine-bridge/frame/governor.h"

#include <algorithm>

namespace imprint::bridge {
namespace {

constexpr float kBack = 1.0f / 16;  // of the budget comes back per frame that has room
constexpr float kRoom = 0.9f;       // of its time: a frame below this has room
constexpr float kGivesWay = 0.75f;
constexpr float kLeastBalanced = 0.25f;

}  // namespace

void Governor::measured(std::uint32_t host_gpu_us) {
  if (host_gpu_us == 0 || frame_us_ == 0 || preference_ == Preference::compute) return;
  const auto took = static_cast<float>(host_gpu_us), may = static_cast<float>(frame_us_);
  if (took > may) {
    share_ = preference_ == Preference::graphics ? 0.0f : std::max(kLeastBalanced, share_ * kGivesWay);
  } else if (took < kRoom * may) {
    share_ = std::min(1.0f, share_ + kBack);
  }
}

}  // namespace imprint::bridge

#pragma once
// Counts how often a brain's steps tell one action from another: by a reward that differs from the step
// before, or by a terminated episode.

#include <cstdint>
#include <utility>

namespace imprint::agent {

class News {
 public:
  void add(float reward, bool terminated) {
    const bool differs = std::exchange(reward_, reward) != reward && steps_ > 0;
    count_ += differs || terminated ? 1 : 0;
    ++steps_;
  }
  // Hardly any step did: exploration is then slow (DecisionDraw::slow), so that it goes further. Hollenstein,
  // Martius, Piater, Colored Noise in PPO, 2024.
  bool are_rare() const {
    constexpr std::uint64_t kFew = 512;  // steps, and steps per piece of news
    return steps_ >= kFew && count_ * kFew < steps_;
  }

 private:
  float reward_ = 0;  // of the newest step
  std::uint64_t steps_ = 0, count_ = 0;
};

}  // namespace imprint::agent

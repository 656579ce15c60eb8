#pragma once
// Counts how often a brain's steps tell one action from another: by a reward that differs from the step
// before, or by a terminated episode.

#include <cstdint>
#include <utility>

namespace imprint::agent {

struct RewardSparsity {
  float reward = 0;  // of the newest step
  std::uint64_t steps = 0, count = 0;

  void add(float of_step, bool terminated) {
    const bool differs = std::exchange(reward, of_step) != of_step && steps > 0;
    count += differs || terminated ? 1 : 0;
    ++steps;
  }
  // Hardly any step did: exploration is then slow (DecisionDraw::slow), so that it goes further. Hollenstein,
  // Martius, Piater, Colored Noise in PPO, 2024. Steps that each earn the same reward above 0 are not sparse:
  // a body that balances would only fall.
  bool is_sparse() const {
    constexpr std::uint64_t kFew = 512;  // steps, and steps per one that tells something
    return steps >= kFew && count * kFew < steps && reward <= 0;
  }
};

}  // namespace imprint::agent

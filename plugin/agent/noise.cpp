#include "plugin/agent/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compute/base/philox.h"

namespace imprint::agent {

void fill_noise(std::span<float> noise, float deviation, std::uint64_t brain_seed, std::uint32_t seat, std::uint64_t decision) {
  const PhiloxKey key{static_cast<std::uint32_t>(brain_seed), static_cast<std::uint32_t>(brain_seed >> 32)};
  // The last word keeps these draws apart from those of tensors, whose counters end in 0.
  const auto low = static_cast<std::uint32_t>(decision);
  const auto high = static_cast<std::uint32_t>(decision >> 32);
  for (std::size_t i = 0; i < noise.size(); i += 4) {
    const PhiloxCounter words = philox({static_cast<std::uint32_t>(i / 4), seat, low, high + 1}, key);
    for (std::size_t pair = 0; pair < 2 && i + 2 * pair < noise.size(); ++pair) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_of(words[2 * pair])));
      const double turn = 2.0 * std::numbers::pi * uniform_of(words[2 * pair + 1]);
      noise[i + 2 * pair] = deviation * static_cast<float>(radius * std::cos(turn));
      if (i + 2 * pair + 1 < noise.size()) noise[i + 2 * pair + 1] = deviation * static_cast<float>(radius * std::sin(turn));
    }
  }
}

}  // namespace imprint::agent

#pragma once
// Converts timestamp ticks to time.

#include <cstdint>

#include "compute/vk/capabilities/capabilities.h"

namespace imprint::vk {

// Microseconds from one timestamp to a later one, which may have wrapped around.
inline double elapsed_us(const Capabilities& capabilities, std::uint64_t begin, std::uint64_t end) {
  const std::uint32_t bits = capabilities.timestamp_valid_bits;
  const std::uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  return static_cast<double>((end - begin) & mask) * capabilities.timestamp_period_ns * 1e-3;
}

}  // namespace imprint::vk

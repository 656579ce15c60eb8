#pragma once
// Observations that never leave the device. Where an agent sees through a buffer that the host shares, each
// of its observations is copied, on the device, into a ring of the last ones of its seat; a sample then names
// the place there in the place of numbers.

#include <cstdint>

#include "plugin/agent/schema.h"

namespace imprint::agent {

// The n-th observation that a seat made through the buffer.
struct Sight {
  std::uint32_t seat = 0;
  std::uint64_t number = 0;  // from 1; 0 = none: the observation is numbers of the host's
};

// Observations a seat that can still become samples: those of the actions that can be credited, twice over.
inline constexpr std::uint32_t kSightsKept = 256;

// Rows of the ring a seat. A step under way may read while later frames write: those have rows beyond the
// kept ones.
inline std::uint32_t sight_rows(const BrainSpec& spec) { return kSightsKept + spec.learn_period_frames + 2; }

// Of the ring of all seats, [seats * sight_rows, observations].
inline std::int32_t sight_row(const BrainSpec& spec, const Sight& sight) {
  return static_cast<std::int32_t>(sight.seat * sight_rows(spec) + sight.number % sight_rows(spec));
}

}  // namespace imprint::agent

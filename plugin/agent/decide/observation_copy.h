#pragma once
// Observations that never leave the device. An agent may observe through a buffer that the host shares. Each
// such observation is copied, on the device, into a ring of the agent's newest ones, together with those that
// it is stacked on; a sample then names a row of the ring instead of holding numbers.

#include <cstdint>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// The n-th observation that an agent made through the shared buffer.
struct ObservationCopy {
  std::uint32_t agent = 0;
  std::uint64_t number = 0;  // from 1; 0 = none: the host handed the observation in as numbers
};

// Copies per agent that can still become samples: twice the actions that can be credited.
inline constexpr std::uint32_t kObservationCopies = 256;

// A brain that does not learn needs only the copy that the next observation is stacked on.
inline std::uint32_t kept_copies(const BrainSpec& spec) {
  return spec.learner == LearnerKind::none ? 2 : kObservationCopies;
}

// Rows of the ring per agent. A learn step may read while later frames write, so there are more rows than
// copies.
inline std::uint32_t copy_rows_per_agent(const BrainSpec& spec) {
  return kept_copies(spec) + spec.learn_period_frames + 2;
}

// Whether a brain that observes through a shared buffer copies what it observes.
inline bool copies_observations(const BrainSpec& spec) {
  return spec.learner != LearnerKind::none || spec.observation.stack > 1;
}

// Row in the ring of all agents, [agents * copy_rows_per_agent, ObservationSpec::width].
inline std::int32_t copy_row(const BrainSpec& spec, const ObservationCopy& copy) {
  const std::uint32_t rows = copy_rows_per_agent(spec);
  return static_cast<std::int32_t>(copy.agent * rows + copy.number % rows);
}

}  // namespace imprint::agent

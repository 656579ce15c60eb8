#pragma once
// Observations that never leave the device. An agent may observe through a buffer that the host shares. Each
// such observation is copied, on the device, into a ring of the agent's newest ones, together with those that
// it is stacked on; a sample then names a row of the ring instead of holding numbers.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/learner_traits.h"

namespace imprint::agent {

// The n-th observation that an agent made through the shared buffer.
struct ObservationCopy {
  std::uint32_t agent = 0;
  std::uint64_t number = 0;  // from 1; 0 = none: the host handed the observation in as numbers
  std::uint64_t next = 0;    // of the observation that the action led to, where samples hold it

  bool any() const { return number > 0 || next > 0; }
};

// Copies per agent that can still become samples: twice the actions that can be credited.
inline constexpr std::uint32_t kObservationCopies = 256;

// A brain that does not learn needs only the copy that the next observation is stacked on. One that collects
// rollouts needs those of two: the next one grows while it learns from the last one.
inline std::uint32_t kept_copies(const BrainSpec& spec) {
  if (!spec.learns()) return 2;
  if (!collects_rollouts(spec)) return kObservationCopies;
  const std::uint32_t of_agent = (spec.rollout_steps - 1) / spec.agents_per_brain + 1;
  return std::max(kObservationCopies, 2 * of_agent + kObservationCopies / 4);
}

// Rows of the ring per agent. A learn step may read while later frames write, so there are more rows than
// copies.
inline std::uint32_t copy_rows_per_agent(const BrainSpec& spec) {
  return kept_copies(spec) + spec.learn_period_frames + 2;
}

// Whether a brain that observes through a shared buffer copies what it observes.
inline bool copies_observations(const BrainSpec& spec) { return spec.learns() || spec.observation.stack > 1; }

// Row in the ring of all agents, [agents * copy_rows_per_agent, ObservationSpec::width].
inline std::int32_t copy_row(const BrainSpec& spec, const ObservationCopy& copy) {
  const std::uint32_t rows = copy_rows_per_agent(spec);
  return static_cast<std::int32_t>(copy.agent * rows + copy.number % rows);
}

// Which copies are on the device, as the host knows.
class CopyLedger {
 public:
  CopyLedger() = default;  // for a brain without a shared buffer
  explicit CopyLedger(const BrainSpec& spec)
      : kept_(kept_copies(spec)),
        rows_(copy_rows_per_agent(spec)),
        newest_(spec.agent_capacity(), 0),
        held_(std::size_t{spec.agent_capacity()} * rows_, 0) {}

  void capture(std::uint32_t agent, std::uint64_t number) {
    if (held_.empty()) return;
    newest_[agent] = number;
    held_[agent * std::size_t{rows_} + number % rows_] = number;
  }
  enum class Found : std::uint8_t { there, waiting, gone };
  // gone: overwritten, or never made, because another episode began in the same frame.
  Found find(const ObservationCopy& copy) const {
    const Found own = find(copy.agent, copy.number), next = find(copy.agent, copy.next);
    return own == Found::gone || next == Found::gone ? Found::gone : own == Found::there ? next : own;
  }

 private:
  Found find(std::uint32_t agent, std::uint64_t number) const {
    if (number == 0) return Found::there;
    if (held_.empty()) return Found::gone;
    if (number > newest_[agent]) return Found::waiting;
    const bool held = held_[agent * std::size_t{rows_} + number % rows_] == number;
    return held && newest_[agent] - number < kept_ ? Found::there : Found::gone;
  }

  std::uint32_t kept_ = 0, rows_ = 0;
  std::vector<std::uint64_t> newest_;  // [agents]
  std::vector<std::uint64_t> held_;    // [agents * rows]
};

}  // namespace imprint::agent

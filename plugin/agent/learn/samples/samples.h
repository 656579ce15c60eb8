#pragma once
// The host's side of samples: those that wait for a learn step, and how full each replay memory is. The
// memories of all brains lie one after the other in one variable [P * capacity, width].

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/learn/sample_layout.h"
#include "plugin/agent/learn/samples/demonstration_memory.h"
#include "plugin/agent/learn/samples/opponents.h"
#include "plugin/agent/learn/samples/reward_sparsity.h"
#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// New samples per brain that one learn step takes in, at least. A person gives a few per second; samples that
// come faster wait in the queue.
inline constexpr std::uint32_t kRowsPerStep = 8;
// The same, at most: crowds of more agents than this lose samples.
inline constexpr std::uint32_t kMostRowsPerStep = 1u << 16;
// Samples per brain that may wait, at least. A full queue drops its oldest sample and counts it.
inline constexpr std::uint32_t kWaitingSamples = 256;

// Waiting samples, oldest first, per brain. Row-major.
class SampleQueue {
 public:
  SampleQueue() = default;
  SampleQueue(std::uint32_t brain_count, std::uint32_t width,
              std::uint32_t capacity);  // width, capacity >= 1

  // Makes room for one more sample; drops the brain's oldest when full. With a copy, the row's observation is
  // not used.
  std::span<float> push(std::uint32_t brain, const ObservationCopy& copy = {});
  // As many may wait from now on, per brain. Never fewer than before.
  void make_room(std::uint64_t samples);
  std::uint32_t size(std::uint32_t brain) const { return queues_[brain].count; }
  std::span<const float> row(std::uint32_t brain, std::uint32_t index) const;  // index 0 is the oldest
  const ObservationCopy& copy(std::uint32_t brain, std::uint32_t index) const;
  void pop(std::uint32_t brain, std::uint32_t count);
  void drop(std::uint32_t brain);  // the oldest; counted
  // Drops samples whose observation is a copy on the device, for files that cannot hold it. Not counted.
  void drop_observation_copies();
  // Before those that wait. A full queue drops the oldest and counts them.
  void put_back(const SampleQueue& taken);
  void clear();
  bool empty() const { return total_ == 0; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Ring {
    std::vector<float> rows;  // grows with the most that ever waited: copying a quiet queue stays cheap
    std::vector<ObservationCopy> copies;
    std::uint32_t first = 0, count = 0;
  };

  std::uint32_t row_count(const Ring& ring) const {
    return static_cast<std::uint32_t>(ring.rows.size() / width_);
  }
  void grow(Ring& ring) const;

  std::vector<Ring> queues_;
  std::uint32_t width_ = 0, capacity_ = 0;
  std::uint64_t total_ = 0, dropped_ = 0;
};

// Copyable: each snapshot holds one.
struct ReplayState {
  std::vector<std::int32_t> next;    // [P] row of the memory that the next sample overwrites
  std::vector<std::int32_t> filled;  // [P] samples in the memory, <= capacity
  SampleQueue waiting;
  DemonstrationMemory demonstrations;
  Opponents opponents;
  std::vector<RewardSparsity> sparsity;  // [P] of a learner that slows_exploration

  static ReplayState empty(const BrainSpec& spec);
  std::uint64_t sample_count() const;
};

// The inputs of a learn step that samples fill. P = brain_count, K = rows_per_step.
struct StepInputs {
  std::span<float> values;       // [P * K, width]
  std::span<std::int32_t> rows;  // [P * K] row of the replay variable; -1 = none
  // [P * K] row of the observation copies, -1 = the observation is in values; empty without copies, and the
  // second one where samples hold no next observation.
  std::span<std::int32_t> copy_rows, next_copy_rows;
  // Samples whose copies are not on the device yet wait; those whose copies are gone are dropped and counted.
  const CopyLedger* captured = nullptr;
};
// Moves at most K waiting samples per brain into a step's inputs and advances next and filled. K <= capacity,
// so that one step never writes a row twice. Without a replay memory the rows number the samples of a brain,
// and nothing advances. Both functions return how many were taken. taken: gets a copy of each.
std::uint64_t take_samples(const BrainSpec& spec, ReplayState& state, const StepInputs& into,
                           SampleQueue* taken = nullptr);
// For learners that collect rollouts, before take_rollouts: drops the samples up to the newest whose copies
// are gone, so that what is left of an agent has no gap. Whether a brain has a rollout to take.
bool has_rollout(const BrainSpec& spec, ReplayState& state, std::uint32_t brain, const CopyLedger& captured);
// For learners that collect rollouts. Takes the oldest rollout_steps samples of each brain that has as many,
// sorted by agent with `begins` = 1 in each agent's first row.
std::uint64_t take_rollouts(const BrainSpec& spec, ReplayState& state, const StepInputs& into);

// Samples per brain that one learn step takes in. Rollouts: rollout_steps. Else as many as all agents of a
// brain can decide in one learn period, at least kRowsPerStep; learners of steps at least a minibatch; never
// more than the replay memory holds.
std::uint32_t rows_per_step(const BrainSpec& spec);
std::uint32_t waiting_capacity(const BrainSpec& spec);  // four steps' worth, at least kWaitingSamples;
                                                        // of the cloning learner a whole memory

}  // namespace imprint::agent

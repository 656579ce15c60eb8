#pragma once
// What the host knows of the replay memories on the device: where the next sample goes, how many there are,
// and samples that wait to get there. The memories of all brains lie behind each other in one variable [P *
// capacity, row width]; a learn step writes at most kRowsPerStep new rows a brain.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/schema.h"

namespace imprint::agent {

// New samples a brain that one learn step takes in, at least. A person gives a few a second; what comes
// faster waits in the queue.
inline constexpr std::uint32_t kRowsPerStep = 8;
// Samples a brain that may wait, at least; beyond, the oldest is dropped and counted.
inline constexpr std::uint32_t kWaitingSamples = 256;

// The columns of a sample. Goal and choices are whole numbers held as floats.
//   feedback: observation | goal | choice | target | weight | margin (1 when its rivals are pushed down)
//   cloning:  observation | goal | choice of each branch | continuous actions | weight
//   dqn:      observation | goal | choice | reward | continues (0: terminated) | next observation | next goal
//   | allowed then (1: each open choice) coach:    observation | goal | choice of each branch | feedback |
//   begins (1: follows from no step before it) | allowed ppo:      observation | goal | choice of each branch
//   | reward | begins | allowed | continues | next observation | next goal
struct SampleLayout {
  std::uint32_t observation = 0, goal = 0, branches = 0, continuous = 0, target = 0, weight = 0,
                margin = 0;  // first column of each
  std::uint32_t reward = 0, continues = 0, begins = 0, next_observation = 0, next_goal = 0, allowed = 0;
  std::uint32_t width = 0;

  static SampleLayout of(const BrainSpec& spec);
};

// Row-major samples waiting, oldest first, for each brain.
class SampleQueue {
 public:
  SampleQueue() = default;
  SampleQueue(std::uint32_t brain_count, std::uint32_t width,
              std::uint32_t capacity);  // width, capacity >= 1

  // Room for one more sample; drops the brain's oldest when full. With a sight, the row's observation is not
  // used.
  std::span<float> push(std::uint32_t brain, const Sight& sight = {});
  std::uint32_t size(std::uint32_t brain) const { return queues_[brain].count; }
  std::span<const float> row(std::uint32_t brain, std::uint32_t index) const;  // index 0 is the oldest
  const Sight& sight(std::uint32_t brain, std::uint32_t index) const;
  void pop(std::uint32_t brain, std::uint32_t count);
  void drop(std::uint32_t brain);  // the oldest, counted
  void drop_sights();              // not counted: they mean nothing where the device's memory of them is not
  void clear();
  bool empty() const { return total_ == 0; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Ring {
    std::vector<float> rows;  // as many as were ever waiting, so that a copy of a quiet queue is small
    std::vector<Sight> sights;
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

// Copyable: a snapshot keeps one.
struct ReplayState {
  std::vector<std::int32_t> next;    // [P] row of the memory that the next sample overwrites
  std::vector<std::int32_t> filled;  // [P] samples remembered, <= capacity
  SampleQueue waiting;

  static ReplayState empty(const BrainSpec& spec);
  std::uint64_t sample_count() const;
};

// Moves waiting samples into a step's inputs, at most K = rows_per_step a brain: fills `values` [P * K,
// width] and `rows` [P * K] (row of the variable, -1 = none), and advances next and filled. K <= capacity, so
// that one step never writes a row twice. Without a memory (LearnerTraits::replays) the rows of a brain are
// its own place's, from its first on, and nothing is advanced.
struct TakenSamples {
  std::span<float> values;
  std::span<std::int32_t> rows;
  std::span<std::int32_t> sights;  // [P * K] row of the ring of sights, -1 = the observation is in values;
                                   // empty where there is no ring
  std::span<const std::uint64_t> captured;  // [seats] newest sight in the ring: newer ones wait, those that
                                            // it has lost are dropped and counted
};
void take_samples(const BrainSpec& spec, ReplayState& state, const TakenSamples& into);
// The same of a learner from rollouts: of each brain for which a whole one waits the oldest rollout_steps
// samples, agent by agent, and what waits beyond them is dropped; of the others nothing. `begins` is 1 in
// each agent's first row.
void take_rollouts(const BrainSpec& spec, ReplayState& state, const TakenSamples& into);
// Where decisions become samples (LearnerTraits::follows) a step takes in as many as a minibatch or rollout
// has, and four times as many may wait.
std::uint32_t rows_per_step(const BrainSpec& spec);
std::uint32_t waiting_capacity(const BrainSpec& spec);

}  // namespace imprint::agent

#pragma once
// Counters of a brain. The frame thread writes, any thread reads.

#include <atomic>
#include <cstdint>

namespace imprint::agent {

// Since the brain was created; saved in its file.
struct BrainCounters {
  std::uint64_t decisions = 0, feedbacks = 0, demonstrations = 0, minibatches = 0, episodes = 0;
};

struct BrainCounts {
  std::atomic<std::uint64_t> decisions{0}, feedbacks{0}, demonstrations{0}, minibatches{0}, episodes{0};
  std::atomic<std::uint64_t> samples{0}, dropped{0};
  std::atomic<float> last_loss{0};
  std::atomic<std::uint32_t> snapshots{0}, late_actions{0}, stopped{0};
  std::atomic<std::uint32_t> infer_dispatches{0}, learn_dispatches{0}, infer_barriers{0}, learn_barriers{0};

  BrainCounters counters() const { return {decisions, feedbacks, demonstrations, minibatches, episodes}; }
  void set(const BrainCounters& c) {
    decisions = c.decisions;
    feedbacks = c.feedbacks;
    demonstrations = c.demonstrations;
    minibatches = c.minibatches;
    episodes = c.episodes;
  }
};

}  // namespace imprint::agent

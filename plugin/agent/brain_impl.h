#pragma once
// Inside the room: what the brain_*.cpp files share.

#include <atomic>

#include "plugin/agent/brain.h"
#include "plugin/agent/decide/policy.h"
#include "plugin/agent/keep/host_copy.h"
#include "plugin/agent/keep/memory_eviction.h"
#include "plugin/agent/keep/saving.h"
#include "plugin/agent/keep/snapshots.h"
#include "plugin/agent/learn/learner.h"

namespace imprint::agent {

struct Brain::Counts {
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

#pragma once
// Counters of a brain. The frame thread writes, any thread reads.

#include <atomic>
#include <cstdint>

namespace imprint::agent {

// Since the brain was created; saved in its file.
struct BrainCounters {
  std::uint64_t decisions = 0, feedbacks = 0, demonstrations = 0, minibatches = 0, episodes = 0;
};

// Experience that learning never gets, by cause. Counts of all brains since creation.
struct LostExperience {
  std::uint64_t intake = 0;      // samples: came faster than learn steps take them in
  std::uint64_t stale = 0;       // steps: decided by weights that are gone (learners of rollouts)
  std::uint64_t unfollowed = 0;  // steps: their next observation never came
  std::uint64_t uncredited = 0;  // feedback and rewards that reached no action

  std::uint64_t samples() const { return intake + stale + unfollowed; }
};

// Each is logged once. The numbers are those of imp_alarm.
enum class Alarm : std::uint64_t {
  dropped_intake = 1 << 0,
  dropped_stale = 1 << 1,
  dropped_unfollowed = 1 << 2,
  uncredited = 1 << 3,
  late_answers = 1 << 4,
  not_finite = 1 << 5,
  diverging_values = 1 << 6,
  no_reward = 1 << 7,
  unused_reward = 1 << 8,
  one_choice_left = 1 << 9,
  one_value = 1 << 10,
  unscaled = 1 << 11,
  spread_words = 1 << 12,
  flat_rewards = 1 << 13,
  cut_reward = 1 << 14,
  overdue_answer = 1 << 15,
  falling_returns = 1 << 16,
  reward_size = 1 << 17
};

struct BrainCounts {
  std::atomic<std::uint64_t> decisions{0}, feedbacks{0}, demonstrations{0}, minibatches{0}, episodes{0};
  std::atomic<std::uint64_t> samples{0}, used{0};
  std::atomic<std::uint64_t> lost_intake{0}, lost_stale{0}, lost_unfollowed{0}, uncredited{0};
  std::atomic<std::uint64_t> alarms{0}, fall_backs{0};
  std::atomic<std::uint64_t> inference_decisions{0};  // of `decisions`, since creation
  std::atomic<float> last_loss{0}, reliability{0}, rating{0};
  std::atomic<std::uint32_t> snapshots{0}, late_actions{0}, stopped{0}, kept_demonstrations{0};
  std::atomic<std::uint32_t> infer_dispatches{0}, learn_dispatches{0}, infer_barriers{0}, learn_barriers{0};

  BrainCounters counters() const { return {decisions, feedbacks, demonstrations, minibatches, episodes}; }
  // False when it was raised before.
  bool raise(Alarm alarm) {
    const auto bit = static_cast<std::uint64_t>(alarm);
    return (alarms.fetch_or(bit) & bit) == 0;
  }
  bool has(Alarm alarm) const { return (alarms & static_cast<std::uint64_t>(alarm)) != 0; }
  LostExperience lost() const { return {lost_intake, lost_stale, lost_unfollowed, uncredited}; }
  void set_lost(const LostExperience& lost) {
    lost_intake = lost.intake;
    lost_stale = lost.stale;
    lost_unfollowed = lost.unfollowed;
    uncredited = lost.uncredited;
  }
  void set(const BrainCounters& c) {
    decisions = c.decisions;
    feedbacks = c.feedbacks;
    demonstrations = c.demonstrations;
    minibatches = c.minibatches;
    episodes = c.episodes;
  }
};

}  // namespace imprint::agent

#pragma once
// Turns what agents do, and what they are told, into samples. Frame thread.
//
// A learner of labelled samples gets one sample per credited action or demonstration. A learner of steps gets
// one per action, once the agent's trajectory says what came of it. Steps that are still on a trajectory are
// in no file and no snapshot; restoring, loading and switching learning off drop them.
//
// Rewards are for the newest step, which becomes a sample as soon as its successor is known. A person's words
// reach back: from an agent's first feedback by onset on, its steps wait until none can reach them.

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plugin/agent/decide/agent_slot.h"
#include "plugin/agent/learn/samples/credit.h"
#include "plugin/agent/learn/samples/returns.h"
#include "plugin/agent/learn/samples/trajectory.h"
#include "plugin/agent/learn/training/training.h"
#include "plugin/agent/spec/brain_counts.h"

namespace imprint::agent {

enum class CreditKind : std::uint8_t { by_onset, current };

struct Feedback {
  float value = 0, weight = 1;
  CreditKind credit = CreditKind::by_onset;
  double time_s = 0;
  LabelSource source = LabelSource::feedback;
};

class Experience {
 public:
  // spec and training outlive it.
  Experience(const BrainSpec& spec, Training& training);

  bool enabled() const { return enabled_; }
  void set_enabled(bool enabled);

  // ---- what an agent does ----
  void acted(std::uint32_t agent, const AgentSlot& slot, double time_s);
  void mode_changes(std::uint32_t agent);  // before the slot's mode changes
  void left(std::uint32_t agent);
  // left: what its group sees without it, where that goes on; empty: nothing does.
  void episode_ends(std::uint32_t agent, EpisodeEnd end, AgentSlot& slot, double time_s,
                    std::span<const float> left = {});

  // ---- what it is told ----
  // A value below 0 also forbids the action that it most likely meant.
  void feedback(std::uint32_t agent, AgentSlot& slot, const Feedback& feedback);
  void reward(std::uint32_t agent, AgentSlot& slot, float reward, double time_s);
  // A labelled sample. No effect while learning is off.
  void add_labelled(std::uint32_t agent, const Choice& choice, float target, float weight,
                    LabelSource source = LabelSource::demonstration);

  void compares() { diagnostics_.compares = true; }  // values that it was told differ
  // Of a learner of demonstrations a sample; else it goes to what was shown.
  void demonstrate(std::uint32_t agent, const Choice& choice, float weight);
  // A brain that was loaded may act well from the start: what it earns is then of one value.
  void loaded() {
    diagnostics_.compares = diagnostics_.loaded = true;
    returns_.forget();
  }

  // Steps that are complete become samples.
  void settle(double time_s);
  void forget_steps();

  // Whether the agent's actions become steps.
  bool records(const AgentSlot& slot) const;

  // LostExperience::intake is the queue's own count.
  const LostExperience& lost() const { return lost_; }
  // Counts that alarms follow from.
  struct Diagnostics {
    std::uint64_t feedbacks = 0, credited_actions = 0;  // by onset that reached an action; those actions
    std::uint64_t equals = 0;  // words and rewards of a learner of labels, as long as all had `value`
    float value = 0;
    bool compares = false;  // another value or a demonstration was given, or the brain was loaded
    bool loaded = false;
    // Rewards of a learner of labels that no person teaches too.
    std::uint64_t rewards = 0, best_rewards = 0;  // all, those of best_reward
    float best_reward = 0;
    std::uint64_t reward_changes = 0;  // between rewards of one agent that follow each other
    double squared_changes = 0;        // their sum
    std::uint64_t steps = 0;           // that became samples
    bool calls_reward = false;         // agent_reward was called, with 0 too
    std::uint64_t zeros = 0;    // actions of a learner of labels that earned 0, before anything else was said
    double largest_reward = 0;  // of one step
    std::uint64_t paid = 0;     // steps with a reward other than 0
    double squared_rewards = 0;  // their sum
    // The highest prediction of the newest decisions, while all were beyond the sum that rewards can reach.
    double highest_value = 0;
    std::uint32_t beyond = 0;  // their number
  };
  const Diagnostics& diagnostics() const { return diagnostics_; }
  Returns& returns() { return returns_; }
  const Returns& returns() const { return returns_; }
  double highest_return() const;  // largest_reward / (1 - discount)
  // Whether a brain explores slowly (RewardSparsity::is_sparse).
  bool explores_slowly(std::uint32_t brain) const {
    return learner_.slows_exploration() && training_.replay().sparsity[brain].is_sparse();
  }

 private:
  bool earns(const AgentSlot& slot) const {
    return enabled_ && slot.mode() == Mode::learning && slot.learns_by_itself();
  }
  void note_values(const Answer& answer);
  bool labels() const { return trajectories_.empty(); }
  void note_value(float value);
  void note_reward(std::uint32_t agent, float reward);
  void settle_zero(std::uint32_t agent, const AgentSlot& slot);
  void settle_silence(std::uint32_t agent, const AgentSlot& slot, double time_s);
  std::uint8_t& praised(std::uint32_t agent, const Choice& choice);
  // Fills credits_.
  void credit(std::uint32_t agent, const AgentSlot& slot, const Feedback& feedback);
  void settle_agent(std::uint32_t agent, double time_s);
  void write_group(std::span<float> into, const Choice& choice) const;
  static void write_action(std::span<float> row, const SampleLayout& layout, const Choice& choice);
  std::span<float> new_sample(std::uint32_t agent, const Choice& choice, std::uint64_t next_copy = 0);
  std::uint64_t next_copy(const Trajectory::Return& found) const;  // ObservationCopy::next
  void add_step(std::uint32_t agent, const Trajectory::Return& found);
  void write_begins(std::span<float> row, std::uint32_t agent, bool begins);
  void write_allowed(std::span<float> row, const Transition& step) const;
  void write_next(std::span<float> row, const Trajectory::Return& found) const;

  const BrainSpec& spec_;
  const Learner& learner_;
  const SampleLayout layout_;
  Training& training_;
  std::vector<Trajectory> trajectories_;    // [agents] of a learner that records steps, else empty
  std::vector<std::uint32_t> newest_step_;  // [P] the agent whose step became a sample last
  std::vector<std::uint8_t> broken_;        // [agents] 1 = its last step did not become a sample
  std::vector<std::uint8_t> has_feedback_;  // [agents] 1 = a person gave it feedback by onset
  // A learner of labels: the feedback that an agent got.
  struct FeedbackHistory {
    std::optional<float> reward;              // the newest
    std::uint64_t rewarded = 0;               // the action that was rewarded last, and
    bool zero = false;                        // so far only by 0
    std::uint64_t settled = 0;                // no word reaches this action and those before
    std::bitset<AgentSlot::kHistory> judged;  // by action number: words or rewards reached it
    std::uint32_t praises = 0;
    bool scolded = false;
    double word_s = 0;  // the newest
  };
  std::vector<FeedbackHistory> histories_;  // [agents]
  std::vector<std::uint8_t> rewarded_;      // [P] 1 = by another number than 0
  std::vector<std::uint8_t> judged_;        // [P] 1 = by a person
  std::vector<std::uint8_t> praised_;       // [agents, goals] 1 = praise was for an action under that goal
  Choice after_;                            // of an agent that left its group; a member to keep its memory
  std::vector<Credit> credits_;             // of one feedback; a member to keep its memory
  LostExperience lost_;
  Diagnostics diagnostics_;
  Returns returns_;
  bool enabled_ = true;
};

}  // namespace imprint::agent

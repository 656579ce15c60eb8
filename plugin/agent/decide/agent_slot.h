#pragma once
// One agent's side of a brain: its command, mask, requests, answers, and its latest actions. No GPU.
//
// A decision: request (with the observation) -> take (joins the frame's batch) -> answer (from the GPU) ->
// act (the game fetches it: the action begins). An answer can be fetched from request frame + latency on,
// however fast the GPU was.
//   * act gives the newest due answer that was not fetched yet and skips older ones.
//   * Without one: not ready while a request is open; the last fetched answer again when none is, or where
//     agents take turns.
//   * A new request drops answers that were due for a frame or more and never fetched.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

enum class Mode : std::uint8_t { learning, inference, heuristic, record };

// An action and its situation.
struct Choice {
  // All that the network sees. Empty when observed through the shared buffer: copy_number and offset then say
  // where.
  std::vector<float> observation;
  std::uint64_t copy_number = 0;  // ObservationCopy::number
  std::int32_t offset = -1;       // of the first element in the shared buffer
  std::uint32_t goal = 0;
  std::uint64_t command = 0;  // which of the agent's commands it belonged to
  std::vector<std::uint32_t> branches;
  std::vector<float> continuous;
  std::vector<float> drawn;           // continuous actions before the clamp, where they were drawn
  std::vector<float> state;           // of the network's cell before the decision, where learning needs it
  std::vector<float> group;           // what its group saw, BrainSpec::group_width; empty without groups
  std::vector<std::int32_t> allowed;  // as write_mask gave it; empty where the slot does not keep masks
  std::uint64_t action = 0;           // from 1, counts the slot's actions; set when it begins
  std::uint64_t version = 0;          // of the weights that decided
  float log_probability = 0;          // of the action, where the slot keeps probabilities
};

// Continuous actions before the clamp, and the log of their density. Empty: they were not drawn.
struct Drawn {
  std::span<const float> numbers = {};
  float log_density = 0;
};

struct Answer {
  std::uint64_t decision = 0;  // from 1
  std::uint64_t requested_frame = 0;
  bool is_new = false;  // false when act() repeats it
  Choice choice;
  std::vector<float> values;  // the goal's outputs before noise
};

class AgentSlot {
 public:
  // Actions that can be credited: two seconds at one decision per frame.
  static constexpr std::size_t kHistory = 128;

  // takes_turns: requests wait for their turn, and the last answer stands until the next one.
  // keeps: what learners of steps must know about a choice later.
  enum class Keeps : std::uint8_t { nothing, masks, masks_and_probabilities };
  AgentSlot(const ActionSpec& action, std::uint32_t latency_frames, bool takes_turns = false,
            Keeps keeps = Keeps::nothing);
  // Decisions see the newest observations that were decided from, the oldest first, and the new one. Before
  // an episode's first there are zeros. count: numbers of one.
  void stack_observations(std::uint32_t count, std::uint32_t stack);

  // ---- occupancy: a slot outlives its agents, so that random draws never repeat ----
  bool occupied() const { return occupied_; }
  void occupy();
  void vacate();

  void set_latency(std::uint32_t frames) { latency_ = frames; }
  Mode mode() const { return mode_; }
  void set_mode(Mode mode);  // drops open requests when the brain no longer decides
  // Whether the brain decides for this agent.
  bool asks_brain() const { return mode_ == Mode::learning || mode_ == Mode::inference; }
  // Agents of a brain with the same number, but 0, are a group.
  std::uint32_t group() const { return group_; }
  void set_group(std::uint32_t group) { group_ = group; }
  // Its newest observation in this episode; null: none yet.
  const std::vector<float>* sees() const {
    if (open_ > 0) return &requests_[open_ - 1].answer.choice.observation;
    return last_.decision > 0 ? &last_.choice.observation : nullptr;
  }
  std::vector<float>& taken_group() { return requests_[open_ - 1].answer.choice.group; }  // after take()
  // Self-play: an entry of the pool that it acts by, or one of learn/samples/opponents.h's numbers.
  std::uint32_t opponent() const { return opponent_; }
  bool learns_by_itself() const { return opponent_ == UINT32_MAX; }
  void set_opponent(std::uint32_t opponent) { opponent_ = opponent; }
  std::uint32_t goal() const { return goal_; }
  void set_goal(std::uint32_t goal);  // begins a new command
  void end_episode();                 // begins a new command; drops credit, requests and answers

  // ---- what is allowed: one flag per choice of each branch ----
  // Empty = all. The caller checks that each branch allows at least one choice.
  void set_mask(std::span<const std::uint8_t> allowed);
  // Bans also end when the agent sees a new situation. scale: ObservationSpec, which outlives the slot.
  void end_bans_with_situation(std::span<const float> scale);
  // Bans the choice of branch 0 for the rest of its command. No effect when that command is over or the mask
  // allows nothing else. Where no choice would be left, the other bans end.
  void scold(const Choice& meant);
  // The newest decisions, one after the other, to which bans until the next command left one choice.
  std::uint32_t cornered() const { return cornered_; }
  // 1 = allowed and not scolded. Scolding is ignored where it would leave no choice.
  void write_mask(std::span<std::int32_t> mask) const;

  // ---- decisions ----
  // Replaces a request of the same frame that was not taken yet. Returns the decision's number.
  std::uint64_t request(std::uint64_t frame, std::span<const float> observation);
  // The same through the shared buffer. The last call of a frame counts.
  std::uint64_t request_in_place(std::uint64_t frame, std::int32_t offset);
  bool wants_decision() const { return waiting_; }
  struct PendingCopy {
    std::uint64_t number = 0;
    std::int32_t offset = -1;
    std::uint64_t before = 0;  // the copy that it is stacked on; 0 = none
    bool closed = false;       // its episode is over: another observation has another number
  };
  // The observation that is still to be copied from the shared buffer, in every mode.
  const std::optional<PendingCopy>& pending_copy() const { return pending_copy_; }
  PendingCopy take_pending_copy() { return *std::exchange(pending_copy_, std::nullopt); }
  struct TakenRequest {
    const Choice* choice = nullptr;  // the situation
    std::uint64_t ticket = 0;        // names the request when its answer arrives
    std::uint64_t draw = 0;  // counts the slot's decisions across agents and saves; keys random numbers
  };
  // Only when wants_decision(). Where agents take turns, the request counts as made in this frame.
  TakenRequest take(std::uint64_t frame, std::uint64_t version = 0);
  // The newest observation without an action; null when there is none.
  const Choice* last_seen();
  // False when the request was dropped.
  bool answer(std::uint64_t ticket, std::span<const std::uint32_t> branches,
              std::span<const float> continuous, std::span<const float> values, const Drawn& drawn = {},
              std::span<const float> state = {});

  enum class Outcome : std::uint8_t { fresh, repeated, not_ready, nothing };
  // The answer is last_answer(). A fresh one begins an action at time_s.
  Outcome act(std::uint64_t frame, double time_s);
  const Answer& last_answer() const { return last_; }

  // The game's own choice for this frame's request. False without a request.
  bool act_by_heuristic(double time_s, std::span<const std::uint32_t> branches,
                        std::span<const float> continuous);

  // ---- actions that can be credited, oldest first ----
  std::span<const double> onsets() const { return onsets_; }
  const Choice& past(std::size_t index) const { return history_[(oldest_ + index) % kHistory]; }

  std::uint64_t draws() const { return draws_; }
  void set_draws(std::uint64_t draws) { draws_ = draws; }

 private:
  struct Request {
    std::uint64_t ticket = 0;
    Answer answer;
    bool answered = false;
  };

  void forget_decisions();
  void begin_command();
  void decided(const Choice& choice);  // its observation joins the stack
  void clear_stack();
  std::span<const float> newest(const Choice& choice) const;  // of its stack
  bool banned() const;
  bool sees_again(const Choice& choice) const;
  void review_bans(const Choice& choice);
  Answer& open_request(std::uint64_t frame);
  void drop(std::size_t index, std::size_t count);  // of the open requests
  void note_mask(Choice& choice) const;
  void note_probability(Answer& answer, float log_density) const;
  void remember(Choice& choice, double time_s);

  std::vector<std::uint32_t> branch_sizes_;
  std::uint32_t choice_count_;
  std::uint32_t latency_;
  bool takes_turns_;
  Keeps keeps_;

  std::vector<float> stack_;  // observations that were decided from, the newest last; without a stack empty
  std::uint64_t stacked_copy_ = 0;  // the same through the shared buffer: the newest copy
  std::size_t observation_count_ = 0;

  bool occupied_ = false;
  Mode mode_ = Mode::learning;
  std::uint32_t opponent_ = UINT32_MAX, group_ = 0;
  std::uint32_t goal_ = 0;
  std::uint64_t command_ = 1;
  std::vector<std::uint8_t> allowed_, scolded_;
  bool bans_end_with_situation_ = false;
  std::span<const float> scale_;
  std::vector<float> situation_;      // of the bans; empty when observed through the shared buffer:
  std::uint64_t situation_copy_ = 0;  // Choice::copy_number
  std::uint32_t cornered_ = 0;

  // Once warm a decision allocates nothing: requests, answers and choices keep their memory for later ones.
  std::vector<Request> requests_;  // the first open_ are open, oldest first; the last may wait for take()
  std::size_t open_ = 0;
  bool waiting_ = false;
  std::uint64_t decisions_ = 0, tickets_ = 0, draws_ = 0, copies_ = 0, actions_ = 0;
  std::optional<PendingCopy> pending_copy_;
  Answer last_;

  std::vector<Choice> history_;  // a ring: onsets_.size() actions from oldest_ on
  std::size_t oldest_ = 0;
  std::vector<double> onsets_;
};

}  // namespace imprint::agent

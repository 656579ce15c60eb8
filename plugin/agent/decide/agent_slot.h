#pragma once
// One agent's side of a brain: its command, its mask, what it asked, what it was answered, and what it did
// lately. No GPU.
//
// A decision goes: request (with what the agent sees) -> take (handed to the GPU with the frame's batch) ->
// answer (delivered by the GPU) -> act (the game fetches it: the onset of the action). An answer can be
// fetched from request frame + latency on, however fast the GPU was.
//   * act gives the newest answer that is due and was not fetched yet; older ones are skipped.
//   * With none such and a request under way: not ready. With none at all, or where agents take turns: the
//   last fetched answer again.
//   * A new request drops answers that have been due for a frame or more and were never fetched: they belong
//   to a past that the game let go.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plugin/agent/schema.h"

namespace imprint::agent {

enum class Mode : std::uint8_t { learning, inference, heuristic, record };

// An action in its situation.
struct Choice {
  std::vector<float> observation;  // empty when it was made through the shared buffer:
  std::uint64_t sight = 0;         // its number then (sight.h)
  std::int32_t place = -1;         // and its first element there
  std::uint32_t goal = 0;
  std::uint64_t command = 0;  // which of the agent's commands it belonged to
  std::vector<std::uint32_t> branches;
  std::vector<float> continuous;
  std::vector<std::int32_t>
      allowed;                // what was open then, as of write_mask; empty where the seat does not keep it
  std::uint64_t action = 0;   // once it began: counts the seat's actions from 1
  std::uint64_t version = 0;  // of the weights that it was asked of
};

struct Answer {
  std::uint64_t decision = 0;  // from 1
  std::uint64_t requested_frame = 0;
  Choice choice;
  std::vector<float> values;  // the goal's outputs before noise
};

class Seat {
 public:
  static constexpr std::size_t kHistory =
      128;  // actions remembered for credit: two seconds at a decision a frame

  // takes_turns: requests wait for their turn, and until the next answer the last one stands. keeps_masks: in
  // Choice::allowed.
  Seat(const ActionSpec& action, std::uint32_t latency_frames, bool takes_turns = false,
       bool keeps_masks = false);

  // ---- occupancy: a seat outlives the agents that sit in it, so that random draws never repeat ----
  bool occupied() const { return occupied_; }
  void sit();
  void leave();

  Mode mode() const { return mode_; }
  void set_mode(Mode mode);  // drops requests under way when the brain is no longer asked
  std::uint32_t goal() const { return goal_; }
  void set_goal(std::uint32_t goal);  // a new command
  void end_episode();  // a new command; nothing to be credited, and no answer to what was asked before

  // ---- what is allowed: one flag for every choice of every branch ----
  void set_mask(
      std::span<const std::uint8_t> allowed);  // empty = all; at least one a branch (checked by the caller)
  // Forbids a choice of branch 0 for the rest of `command`. No effect when that command is over, or when it
  // is the last choice allowed.
  void scold(std::uint32_t choice, std::uint64_t command);
  // 1 for what may be chosen now: allowed and not scolded; scolding yields when it would leave nothing.
  void write_mask(std::span<std::int32_t> mask) const;

  // ---- decisions ----
  // Replaces a request of the same frame that was not taken yet. Returns the decision's number.
  std::uint64_t request(std::uint64_t frame, std::span<const float> observation);
  // The same through the shared buffer. In one frame an agent looks once: the last call counts.
  std::uint64_t request_in_place(std::uint64_t frame, std::int32_t place);
  bool wants_decision() const { return waiting_; }
  struct Look {
    std::uint64_t number = 0;
    std::int32_t place = -1;
  };
  // What is yet to be copied from the shared buffer, whoever decides.
  const std::optional<Look>& look() const { return look_; }
  Look take_look() { return *std::exchange(look_, std::nullopt); }
  struct Taken {
    const Choice* choice = nullptr;  // the situation
    std::uint64_t ticket = 0;        // names the request when the answer comes
    std::uint64_t draw = 0;  // counts the seat's decisions for the random numbers, across agents and saves
  };
  // Only when wants_decision(); where agents take turns the request counts as made in this frame. version:
  // Choice::version.
  Taken take(std::uint64_t frame, std::uint64_t version = 0);
  // What the agent saw last, when it was not acted upon yet; null where there is none.
  const Choice* last_seen();
  // False when nobody waits for it any more.
  bool answer(std::uint64_t ticket, std::span<const std::uint32_t> branches,
              std::span<const float> continuous, std::span<const float> values);

  enum class Outcome : std::uint8_t { fresh, repeated, not_ready, nothing };
  // The answer is last_answer(). A fresh one starts an action at time_s.
  Outcome act(std::uint64_t frame, double time_s);
  const Answer& last_answer() const { return last_; }

  // What the game chose by itself for the request of this frame. False when there is none.
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
  Answer& pend(std::uint64_t frame);
  void drop(std::size_t index, std::size_t count);  // of the open requests
  void note_mask(Choice& choice) const;
  void remember(Choice& choice, double time_s);

  std::vector<std::uint32_t> branch_sizes_;
  std::uint32_t choice_count_;
  std::uint32_t latency_;
  bool takes_turns_, keeps_masks_;

  bool occupied_ = false;
  Mode mode_ = Mode::learning;
  std::uint32_t goal_ = 0;
  std::uint64_t command_ = 1;
  std::vector<std::uint8_t> allowed_, scolded_;

  // Once warm a decision allocates nothing: requests, answers and choices that are over keep their memory for
  // the next ones.
  std::vector<Request>
      requests_;  // the first open_ of them, oldest first; the last one may still be waiting for take()
  std::size_t open_ = 0;
  bool waiting_ = false;
  std::uint64_t decisions_ = 0, tickets_ = 0, draws_ = 0, sights_ = 0, actions_ = 0;
  std::optional<Look> look_;
  Answer last_;

  std::vector<Choice> history_;  // a ring, as many of them as onsets_ from oldest_ on
  std::size_t oldest_ = 0;
  std::vector<double> onsets_;
};

}  // namespace imprint::agent

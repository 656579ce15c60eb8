#pragma once
// One command, from its first decision to success or giving up. A success is strict: every decision was right
// until the goal.

#include <cstdint>

#include "samples/pet/yard/world.h"

namespace pet {

inline constexpr std::uint32_t kMostDecisions = 8;

class Trial {
 public:
  enum class State : std::uint8_t {
    running,
    success,
    clumsy,
    failure
  };  // clumsy: reached the goal, but not straight

  // The world must already be told the cue.
  void begin(Cue cue);
  // Judges a decision as it begins; true when it was right.
  bool decide(const World& before, Action action);
  // The same where right or wrong is known: the yard has changed since.
  bool decide(bool right, Action action);
  // After an action has ended, completed or not.
  State after(const World& world);

  Cue cue() const { return cue_; }
  State state() const { return state_; }
  bool over() const { return state_ != State::running; }
  std::uint32_t decisions() const { return decisions_; }

 private:
  Cue cue_ = Cue::none;
  State state_ = State::failure;
  bool flawless_ = true;
  bool last_right_ = false;
  Action last_action_ = Action::sit;
  std::uint32_t decisions_ = 0;
};

}  // namespace pet

#pragma once
// One command, from its first decision to success or failure. Success is strict: every decision was right.

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
  };  // clumsy: reached the goal after a wrong decision

  // World::set_cue must come first.
  void begin(Cue cue);
  // Judges a decision as it begins; true when it was right.
  bool decide(const World& before, Action action);
  // The same with a known judgement, when the yard has changed since.
  bool decide(bool right, Action action);
  // Call after an action has ended, completed or not.
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

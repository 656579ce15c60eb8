#include "samples/pet/yard/trial.h"

namespace pet {

void Trial::begin(Cue cue) {
  *this = Trial();
  cue_ = cue;
  state_ = State::running;
}

bool Trial::decide(const World& before, Action action) {
  return decide(right_action(cue_, before) == action, action);
}

bool Trial::decide(bool right, Action action) {
  last_right_ = right;
  last_action_ = action;
  flawless_ = flawless_ && last_right_;
  ++decisions_;
  return last_right_;
}

Trial::State Trial::after(const World& world) {
  const bool last_step = cue_ != Cue::fetch || last_action_ == Action::give;
  if (last_right_ && last_step && world.completed() && (cue_ != Cue::fetch || world.gave_to_player())) {
    state_ = flawless_ ? State::success : State::clumsy;
  } else if (decisions_ >= kMostDecisions) {
    state_ = State::failure;
  }
  return state_;
}

}  // namespace pet

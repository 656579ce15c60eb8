#include "samples/pet/view/input/pad.h"

#include <cmath>

namespace pet {
namespace {

constexpr float kDead = 0.25f;      // sticks do not rest exactly in the middle
constexpr float kWalkAhead = 4.0f;  // m/s
constexpr float kLookSpeed = 1.8f;  // rad/s
constexpr float kPulled = 0.0f;     // half way

float past_dead(float value) {
  return std::abs(value) < kDead ? 0.0f : (value - std::copysign(kDead, value)) / (1.0f - kDead);
}

}  // namespace

Pad::Look Pad::read(const std::optional<PadState>& state, float seconds, Vec2 player, Vec2 right,
                    PlayerInput& input) {
  // A button that is down when the pad is plugged in was not pressed.
  const std::optional<PadState> before = before_ ? before_ : state;
  before_ = state;
  if (!state) return {};
  const auto pressed = [&](PadState::Button button) {
    return state->buttons[button] && !before->buttons[button];
  };
  const auto pulled = [&](PadState::Axis axis) {
    return state->axes[axis] > kPulled && before->axes[axis] <= kPulled;
  };
  if (pressed(PadState::up)) input.cue = Cue::sit;
  if (pressed(PadState::right)) input.cue = Cue::spin;
  if (pressed(PadState::down)) input.cue = Cue::come;
  if (pressed(PadState::left)) input.cue = Cue::fetch;
  if (pressed(PadState::left_bumper)) input.cue = Cue::bed;
  if (pressed(PadState::a)) ++input.praise;
  if (pressed(PadState::b)) ++input.scold;
  if (pressed(PadState::x)) ++input.treat;
  if (pressed(PadState::y)) ++input.click;
  if (pressed(PadState::right_bumper)) input.demonstrate = true;
  if (pulled(PadState::left_trigger)) input.interrupt = true;
  if (pulled(PadState::right_trigger)) input.snapshot = true;
  if (pressed(PadState::back)) input.undo = true;
  if (pressed(PadState::start)) input.toggle_pause = true;
  if (pressed(PadState::left_thumb)) input.toggle_auto_cue = true;

  const float x = past_dead(state->axes[PadState::left_x]), y = past_dead(state->axes[PadState::left_y]);
  if (x != 0.0f || y != 0.0f) {
    const Vec2 ahead{-right.y, right.x};
    const float far = kWalkAhead * seconds;
    input.walk_to =
        Vec2{player.x + (right.x * x - ahead.x * y) * far, player.y + (right.y * x - ahead.y * y) * far};
  }
  Look look;
  look.yaw = past_dead(state->axes[PadState::right_x]) * kLookSpeed * seconds;
  look.pitch = -past_dead(state->axes[PadState::right_y]) * kLookSpeed * seconds;
  look.reset = pressed(PadState::right_thumb);
  return look;
}

}  // namespace pet

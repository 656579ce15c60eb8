#pragma once
// Turns a gamepad into PlayerInput. Every signal has one button; sticks walk and look.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "samples/pet/view/input/player_input.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

// Buttons and axes have GLFW's numbers, which are those of an Xbox controller.
struct PadState {
  enum Button : std::uint8_t {
    a,
    b,
    x,
    y,
    left_bumper,
    right_bumper,
    back,
    start,
    guide,
    left_thumb,
    right_thumb,
    up,
    right,
    down,
    left
  };
  enum Axis : std::uint8_t { left_x, left_y, right_x, right_y, left_trigger, right_trigger };
  static constexpr std::size_t kButtons = left + 1, kAxes = right_trigger + 1;
  std::array<bool, kButtons> buttons{};
  // Sticks: x right, y down, -1 .. 1. Triggers: -1 at rest, 1 pulled.
  std::array<float, kAxes> axes{0.0f, 0.0f, 0.0f, 0.0f, -1.0f, -1.0f};
};

class Pad {
 public:
  // Camera movement by the right stick, radians.
  struct Look {
    float yaw = 0.0f, pitch = 0.0f;
    bool reset = false;
  };
  // Adds new presses to `input`. state: nothing without a pad. player: their place; right: the ground
  // direction to the right of the picture.
  Look read(const std::optional<PadState>& state, float seconds, Vec2 player, Vec2 right, PlayerInput& input);

 private:
  std::optional<PadState> before_;
};

}  // namespace pet

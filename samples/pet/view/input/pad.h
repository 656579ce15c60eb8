#ifndef IMPRINT_SAMPLES_PET_VIEW_INPUT_PAD_H_
#define IMPRINT_SAMPLES_PET_VIEW_INPUT_PAD_H_
// A gamepad to what the player means. Every signal is on one button; sticks walk and look.

#include <array>
#include <cstdint>
#include <optional>

#include "samples/pet/view/input/player_input.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

// In the order of GLFW's gamepad buttons and axes, which is that of an Xbox controller.
struct PadState {
  enum Button : uint8_t {
    kA,
    kB,
    kX,
    kY,
    kLeftBumper,
    kRightBumper,
    kBack,
    kStart,
    kGuide,
    kLeftThumb,
    kRightThumb,
    kUp,
    kRight,
    kDown,
    kLeft,
    kButtons
  };
  enum Axis : uint8_t { kLeftX, kLeftY, kRightX, kRightY, kLeftTrigger, kRightTrigger, kAxes };
  std::array<bool, kButtons> buttons{};
  std::array<float, kAxes> axes{0.0f,  0.0f, 0.0f, 0.0f,
                                -1.0f, -1.0f};  // sticks: x right, y down; triggers: -1 at rest, 1 pulled
};

class Pad {
 public:
  // What the sticks ask of the camera, radians.
  struct Look {
    float yaw = 0.0f, pitch = 0.0f;
    bool reset = false;
  };
  // Adds what was pressed since the last look to `input`. state: nothing while no pad is there. player: where
  // they stand; right: the ground direction to the right of the picture.
  Look read(const std::optional<PadState>& state, float seconds, Vec2 player, Vec2 right, PlayerInput& input);

 private:
  std::optional<PadState> before_;
};

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_VIEW_INPUT_PAD_H_

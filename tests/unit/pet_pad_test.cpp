// The pet game's gamepad: the effect of every button and stick.

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "samples/pet/view/input/pad.h"

namespace pet {
namespace {

TEST(Gamepad, EveryButtonSaysItsSignalOnce) {
  const std::vector<std::pair<int, std::function<bool(const PlayerInput&)>>> buttons = {
      {PadState::up, [](const PlayerInput& i) { return i.cue == Cue::sit; }},
      {PadState::right, [](const PlayerInput& i) { return i.cue == Cue::spin; }},
      {PadState::down, [](const PlayerInput& i) { return i.cue == Cue::come; }},
      {PadState::left, [](const PlayerInput& i) { return i.cue == Cue::fetch; }},
      {PadState::left_bumper, [](const PlayerInput& i) { return i.cue == Cue::bed; }},
      {PadState::a, [](const PlayerInput& i) { return i.praise == 1; }},
      {PadState::b, [](const PlayerInput& i) { return i.scold == 1; }},
      {PadState::x, [](const PlayerInput& i) { return i.treat == 1; }},
      {PadState::y, [](const PlayerInput& i) { return i.click == 1; }},
      {PadState::right_bumper, [](const PlayerInput& i) { return i.demonstrate; }},
      {PadState::back, [](const PlayerInput& i) { return i.undo; }},
      {PadState::start, [](const PlayerInput& i) { return i.toggle_pause; }},
      {PadState::left_thumb, [](const PlayerInput& i) { return i.toggle_auto_cue; }}};
  for (const auto& [button, says] : buttons) {
    Pad pad;
    PadState state;
    PlayerInput nothing;
    pad.read(state, 0.016f, {}, {1, 0}, nothing);
    EXPECT_FALSE(says(nothing));
    state.buttons[static_cast<std::size_t>(button)] = true;
    PlayerInput pressed, held;
    pad.read(state, 0.016f, {}, {1, 0}, pressed);
    pad.read(state, 0.016f, {}, {1, 0}, held);
    EXPECT_TRUE(says(pressed)) << button;
    EXPECT_FALSE(says(held)) << button;
  }
}

TEST(Gamepad, TriggersAreButtons) {
  Pad pad;
  PadState state;
  PlayerInput input;
  pad.read(state, 0.016f, {}, {1, 0}, input);
  state.axes[PadState::left_trigger] = 0.4f;
  pad.read(state, 0.016f, {}, {1, 0}, input);
  EXPECT_TRUE(input.interrupt);
  EXPECT_FALSE(input.snapshot);
  PlayerInput held;
  state.axes[PadState::left_trigger] = 1.0f;
  pad.read(state, 0.016f, {}, {1, 0}, held);
  EXPECT_FALSE(held.interrupt);
}

TEST(Gamepad, SticksWalkAndLookAsTheCameraStands) {
  Pad pad;
  PadState state;
  PlayerInput input;
  state.axes[PadState::left_x] = 0.1f;  // not quite in the middle
  EXPECT_EQ(pad.read(state, 0.5f, {1, 1}, {1, 0}, input).yaw, 0.0f);
  EXPECT_FALSE(input.walk_to);
  state.axes[PadState::left_x] = 0.0f;
  state.axes[PadState::left_y] = -1.0f;  // up
  pad.read(state, 0.5f, {1, 1}, {1, 0}, input);
  ASSERT_TRUE(input.walk_to);
  EXPECT_NEAR(input.walk_to->x, 1.0f, 1e-5f);
  EXPECT_NEAR(input.walk_to->y, 3.0f, 1e-5f);
  pad.read(state, 0.5f, {1, 1}, {0, 1}, input);  // the camera looks along -x
  EXPECT_NEAR(input.walk_to->x, -1.0f, 1e-5f);
  EXPECT_NEAR(input.walk_to->y, 1.0f, 1e-5f);
  state.axes[PadState::right_x] = 1.0f;
  state.axes[PadState::right_y] = -1.0f;
  const Pad::Look look = pad.read(state, 0.5f, {1, 1}, {1, 0}, input);
  EXPECT_GT(look.yaw, 0.0f);
  EXPECT_GT(look.pitch, 0.0f);
}

TEST(Gamepad, ButtonsHeldWhilePluggingInAreNotPressed) {
  Pad pad;
  PadState state;
  state.buttons[PadState::b] = true;
  PlayerInput input;
  pad.read(std::nullopt, 0.016f, {}, {1, 0}, input);
  pad.read(state, 0.016f, {}, {1, 0}, input);
  pad.read(std::nullopt, 0.016f, {}, {1, 0}, input);
  EXPECT_EQ(input.scold, 0u);
}

}  // namespace
}  // namespace pet

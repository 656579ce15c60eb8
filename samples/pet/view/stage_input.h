#pragma once
// Keys, mouse and gamepad to what the player means.

#include "samples/pet/view/input/pad.h"
#include "samples/pet/view/input/player_input.h"
#include "samples/pet/view/input/window.h"
#include "samples/pet/view/overlay/overlay.h"

namespace pet {

class StageInput {
 public:
  WindowEvents events();
  void attach(Camera& camera, Overlay& overlay);
  // What was drawn last: clicks are aimed at it.
  void see(const WorldView& world, const Anchors& anchors);

  // The gamepad as it is now; nothing without one. seconds: since the last call.
  void pad(const std::optional<PadState>& state, float seconds);

  // The key, or the gamepad's button, of praise is down. Only of account once H was pressed. seconds: since
  // the last call.
  void hold(bool praising, float seconds);
  static int praise_key();

  PlayerInput& pending() { return pending_; }
  PlayerInput take();

 private:
  enum class Drag : std::uint8_t { none, walk, ball, pet, view };
  void key(int key, int modifiers);
  void mouse(int button, bool pressed, Vec2 at);
  void moved(Vec2 at, Vec2 by);
  void handle_pet(Vec2 at, Vec2 by);
  bool on_pet(Vec2 at) const;
  bool on_ball(Vec2 at) const;
  std::optional<Vec2> yard_point(Vec2 at) const;
  float pixels_per_metre(Vec3 where) const;

  Camera* camera_ = nullptr;
  Overlay* overlay_ = nullptr;
  PlayerInput pending_;
  Drag drag_ = Drag::none;
  int drag_button_ = 0;  // that began it, and alone ends it
  // With the button down on the pet, in metres there: how far the hand has moved, and how far since it last
  // praised; where it began, in pixels.
  float handled_ = 0.0f, stroked_ = 0.0f;
  Vec2 took_;
  bool strokes_ = false, lures_ = false;
  bool hold_praises_ = false;
  float held_s_ = 0.0f;
  Pad pad_;
  Vec2 offset_, ball_, player_;
  Vec3 pet_;
  bool ball_free_ = false, seen_ = false, help_shown_ = false;
};

}  // namespace pet

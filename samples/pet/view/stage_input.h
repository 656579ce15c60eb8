#pragma once
// Turns keys, mouse and gamepad into PlayerInput.

#include "samples/pet/view/input/pad.h"
#include "samples/pet/view/input/player_input.h"
#include "samples/pet/view/input/window.h"
#include "samples/pet/view/overlay/overlay.h"

namespace pet {

class StageInput {
 public:
  WindowEvents events();
  void attach(Camera& camera, Overlay& overlay);
  // The newest drawn world: clicks are aimed at it.
  void see(const WorldView& world, const Anchors& anchors);

  // The gamepad's state; nothing without one. seconds: since the last call.
  void pad(const std::optional<PadState>& state, float seconds);

  // The key or gamepad button of praise is down. Counts only after H. seconds: since the last call.
  void hold(bool praising, float seconds);
  static int praise_key();

  PlayerInput& pending() { return pending_; }
  PlayerInput take();

 private:
  enum class Drag : std::uint8_t { none, walk, ball, pet, view };
  void key(int key, int modifiers);
  // The keys of teaching and of the game; false for other keys.
  bool teaching_key(int key);
  bool game_key(int key, int modifiers);
  // The keys of overlay, help and camera.
  void view_key(int key);
  void toggle_help();
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
  int drag_button_ = 0;  // the button that began the drag, and alone ends it
  // While the button is down on the pet: metres that the hand has moved, metres since its last praise, and
  // its start in pixels.
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

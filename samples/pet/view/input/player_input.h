#pragma once
// What the player did since the last frame. Keys, mouse, gamepad and overlay buttons end here; the game asks
// nothing else of the window.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

struct PlayerInput {
  bool quit = false;

  // Teaching. Counts, because two presses may fall into one frame.
  std::optional<Cue> cue;    // keys 1-5 and the command buttons
  std::optional<Cue> chain;  // the same with Shift, or a right click: after the command in force
  std::uint32_t praise = 0;  // P, or a click on the pet, or a stroke over it
  std::uint32_t scold = 0;   // S, or a right click on the pet
  std::uint32_t treat = 0;   // T
  std::uint32_t click = 0;   // C
  bool demonstrate = false;  // D: show the trick of the command in force
  bool interrupt = false;    // N: "no!", which ends what it does and blames exactly that

  struct Name {
    Cue cue;
    CueNameText text;
  };
  std::optional<Name> name;  // F3, or a middle click on a command button: what it is called from now on

  // The yard.
  std::optional<Vec2> walk_to;  // click on the ground
  std::optional<Vec2> ball_to;  // the ball is dragged here
  std::optional<Vec2> lure_to;  // the pet is dragged here
  bool let_go = false;          // and let go

  // The game.
  bool toggle_pause = false;     // space
  bool toggle_slow = false;      // L
  bool toggle_ghost = false;     // G
  bool toggle_learning = false;  // O
  bool next_mind = false;        // M: the mind of the next learner, then learning off, then the first again
  bool toggle_auto_cue =
      false;  // A: one-switch play, commands come by themselves and the player only praises
  std::optional<bool> hold_praise;  // H: from now on holding P praises again and again, or no more
  bool save = false;                // F5
  bool snapshot = false;            // F6
  bool undo = false;                // U or Ctrl+Z: back to the newest snapshot
  std::optional<std::size_t>
      restore;        // click on a snapshot of the timeline: its index in OverlayState::snapshots
  bool then = false;  // Y: beside the pet of now the one of the newest snapshot, then an older one each time,
                      // then no more
  std::optional<std::size_t>
      then_at;           // right click on a snapshot: beside the pet of now the one of that snapshot
  bool measure = false;  // F2: how quick the player is; again: stop
};

}  // namespace pet

#pragma once
// The player's input since the last frame, from keys, mouse, gamepad and overlay buttons.

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
  bool interrupt = false;    // N: "no!", ends the current action and scolds exactly that

  struct Name {
    Cue cue;
    CueNameText text;
  };
  std::optional<Name> name;  // F3, or a middle click on a command button: its new name

  // The yard.
  std::optional<Vec2> walk_to;  // click on the ground
  std::optional<Vec2> ball_to;  // the ball is dragged here
  std::optional<Vec2> lure_to;  // the pet is dragged here
  bool let_go = false;          // the pet is let go

  // The game.
  bool toggle_pause = false;           // space
  bool toggle_help = false;            // F1 and Esc: the game waits while the help is open
  bool toggle_inspector = false;       // F4: how the brains learn
  bool toggle_slow = false;            // L
  bool toggle_ghost = false;           // G
  bool toggle_learning = false;        // O
  bool next_mind = false;              // M: the next learner, then learning off, then the first again
  bool toggle_auto_cue = false;        // A: the game gives the commands, the player only praises
  std::optional<bool> hold_praise;     // H: whether holding P praises again and again
  bool save = false;                   // F5
  bool snapshot = false;               // F6
  bool undo = false;                   // U or Ctrl+Z: back to the newest snapshot
  std::optional<std::size_t> restore;  // click on a snapshot: its index in OverlayState::snapshots
  bool then = false;  // Y: show the pet as it was at the newest snapshot, then at an older one, then no more
  std::optional<std::size_t> then_at;  // right click on a snapshot: show the pet as it was then
  bool measure = false;                // F2: measure the reaction time; again: stop
};

}  // namespace pet

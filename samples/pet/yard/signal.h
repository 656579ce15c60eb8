#pragma once
// Everything that reaches a pet from outside: from a person, a scripted teacher or a log. The same signals in
// the same frames make the same pet.

#include <cstdint>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

enum class SignalKind : std::uint8_t {
  redraw,       // a new layout; `number` is the random seed
  cue,          // give the command `cue`; none calls it off
  praise,       // +1
  scold,        // -1, and stops a walk under way
  treat,        // +1, counts double
  click,        // +1 for exactly the current action
  show,         // "show me": lead the pet through the whole trick of the command in force
  move_player,  // to `position`
  move_ball,    // to `position`
  snapshot,     // keep a copy of the brain
  undo,         // back to kept snapshot `number`, from 1, oldest first; 0 = the newest
  learning,     // number 1 = on, 0 = off
  no,           // -1 for exactly the current action, which ends at once; while idle, a scold
  reaction,     // the player's reaction time, `number` milliseconds, from now on
  then,         // `cue` after the command in force; at once without one
  learner,      // use the brain of Learner `number`, if there is one
  lure,         // the player's hand leads the pet to `position`
  let_go,  // ends the lead: shows that what it was led to is right for the command in force, or without one
  name,    // the player's name of the command `cue` is `text` from now on
};

struct Signal {
  SignalKind kind = SignalKind::praise;
  Cue cue = Cue::none;
  Vec2 position;
  std::uint64_t number = 0;
  CueNameText text{};
};

inline Signal give_cue(Cue cue) { return {SignalKind::cue, cue, {}, 0, {}}; }
inline Signal then_cue(Cue cue) { return {SignalKind::then, cue, {}, 0, {}}; }
inline Signal signal(SignalKind kind, std::uint64_t number = 0) { return {kind, Cue::none, {}, number, {}}; }
inline Signal move(SignalKind kind, Vec2 position) { return {kind, Cue::none, position, 0, {}}; }
// Cuts a text that is too long. CueNames::set then refuses it.
inline Signal name_cue(Cue cue, std::string_view text) {
  Signal signal{SignalKind::name, cue, {}, 0, {}};
  text.copy(signal.text.data(), signal.text.size() - 1);
  return signal;
}

}  // namespace pet

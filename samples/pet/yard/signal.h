#pragma once
// Everything that reaches a pet from outside, from a person, the scripted teacher or a log alike. The same
// signals in the same frames make the same pet.

#include <cstdint>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

enum class SignalKind : std::uint8_t {
  redraw,       // place everything anew; `number` is the random seed
  cue,          // give the command `cue`; none calls it off
  praise,       // +1
  scold,        // -1, and stops a walk under way
  treat,        // +1, counts double
  click,        // +1 for exactly what it does now
  show,         // "show me": lead the pet through the whole trick of the command in force
  move_player,  // to `position`
  move_ball,    // to `position`
  snapshot,     // keep a copy of the brain
  undo,         // back to the snapshot at place `number` of those kept, counted from 1, oldest first; 0 = the
                // newest
  learning,     // number 1 = on, 0 = off
  no,           // -1 for exactly what it does now, which ends at once; while it does nothing, a scold
  reaction,     // how long the player takes to react is `number` milliseconds from now on
  then,         // `cue` as soon as the command in force was followed; at once without one
  learner,      // the brain of Learner `number` is in use from now on, where there is one
  lure,         // the hand is at `position`, and the pet follows it there
  let_go,  // and is let go: what it was led to, if anything, is shown to be right for the command in force,
           // or for when there is none
  name,    // the player calls the command `cue` `text` from now on
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
// What is too long is cut, and then refused where names are judged: CueNames::set.
inline Signal name_cue(Cue cue, std::string_view text) {
  Signal signal{SignalKind::name, cue, {}, 0, {}};
  text.copy(signal.text.data(), signal.text.size() - 1);
  return signal;
}

}  // namespace pet

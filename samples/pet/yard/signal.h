#ifndef IMPRINT_SAMPLES_PET_YARD_SIGNAL_H_
#define IMPRINT_SAMPLES_PET_YARD_SIGNAL_H_
// Everything that reaches a pet from outside, from a person, the scripted teacher or a log alike. The same
// signals in the same frames make the same pet.

#include <cstdint>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

enum class SignalKind : uint8_t {
  kRedraw,      // place everything anew; `number` is the random seed
  kCue,         // give the command `cue`; kNone calls it off
  kPraise,      // +1
  kScold,       // -1, and stops a walk under way
  kTreat,       // +1, counts double
  kClick,       // +1 for exactly what it does now
  kShow,        // "show me": lead the pet through the whole trick of the command in force
  kMovePlayer,  // to `position`
  kMoveBall,    // to `position`
  kSnapshot,    // keep a copy of the brain
  kUndo,        // back to the snapshot at place `number` of those kept, counted from 1, oldest first; 0 = the
                // newest
  kLearning,    // number 1 = on, 0 = off
  kNo,          // -1 for exactly what it does now, which ends at once; while it does nothing, a scold
  kReaction,    // how long the player takes to react is `number` milliseconds from now on
  kThen,        // `cue` as soon as the command in force was followed; at once without one
  kLearner,     // the brain of Learner `number` is in use from now on, where there is one
  kLure,        // the hand is at `position`, and the pet follows it there
  kLetGo,  // and is let go: what it was led to, if anything, is shown to be right for the command in force,
           // or for when there is none
  kName,   // the player calls the command `cue` `text` from now on
};

struct Signal {
  SignalKind kind = SignalKind::kPraise;
  Cue cue = Cue::kNone;
  Vec2 position;
  uint64_t number = 0;
  CueNameText text{};
};

inline Signal give_cue(Cue cue) { return {SignalKind::kCue, cue, {}, 0, {}}; }
inline Signal then_cue(Cue cue) { return {SignalKind::kThen, cue, {}, 0, {}}; }
inline Signal signal(SignalKind kind, uint64_t number = 0) { return {kind, Cue::kNone, {}, number, {}}; }
inline Signal move(SignalKind kind, Vec2 position) { return {kind, Cue::kNone, position, 0, {}}; }
// What is too long is cut, and then refused where names are judged: CueNames::set.
inline Signal name_cue(Cue cue, std::string_view text) {
  Signal signal{SignalKind::kName, cue, {}, 0, {}};
  text.copy(signal.text.data(), signal.text.size() - 1);
  return signal;
}

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_YARD_SIGNAL_H_

#ifndef IMPRINT_SAMPLES_PET_LESSONS_H_
#define IMPRINT_SAMPLES_PET_LESSONS_H_
// What was practised in play and what comes next: sit, come, bed, spin, then fetch; a lesson is over with 4 successes in the last 5 commands.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "samples/pet/overlay_state.h"
#include "samples/pet/trial.h"

namespace pet {

class Lessons {
 public:
  static constexpr std::array<Cue, kTrickCount> kOrder = {Cue::kSit, Cue::kCome, Cue::kBed, Cue::kSpin, Cue::kFetch};

  // A command has ended. True when its trick has just been learned.
  bool record(const Trial& trial);
  const std::array<TrickScore, kTrickCount>& scores() const { return scores_; }
  // The first trick that is not learned yet; nothing when all are.
  std::optional<Cue> next() const;
  // One line for the player.
  std::string advice() const;
  // What a game that gives the commands by itself asks for now: mostly the lesson, sometimes what was learned.
  Cue choose(uint32_t dice) const;

 private:
  std::array<TrickScore, kTrickCount> scores_{};
  std::array<uint8_t, kTrickCount> last_five_{};  // a bit each, newest lowest
};

size_t trick_index(Cue cue);  // in kTricks; not for Cue::kNone

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_LESSONS_H_

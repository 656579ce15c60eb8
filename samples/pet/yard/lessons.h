#pragma once
// The curriculum: sit, come, bed, spin, fetch, then staying off the sofa, then two commands at once. A lesson
// is learned with 4 successes in the last 5 tries.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "samples/pet/yard/cue_names.h"
#include "samples/pet/yard/trial.h"

namespace pet {

// A trick's recent success, in the order of kTricks.
struct TrickScore {
  float success = 0.0f;     // 0..1 over the last tries
  std::uint32_t tries = 0;  // 0: not tried yet, success means nothing
  bool mastered = false;    // 4 of the last 5
};

class Lessons {
 public:
  static constexpr std::array<Cue, kTrickCount> kOrder = {Cue::sit, Cue::come, Cue::bed, Cue::spin,
                                                          Cue::fetch};

  // A command has ended. True when its trick has just been learned.
  bool record(const Trial& trial);
  const std::array<TrickScore, kTrickCount>& scores() const { return scores_; }
  // The pet has begun an idle action. After its first visit to the sofa, kIdleTry of them are one try, good
  // if none led there. True when the rule has just been learned.
  static constexpr std::uint32_t kIdleTry = 5;
  bool record_idle(bool sofa);
  const TrickScore& rule() const { return rule_.score; }
  // A chain of commands has ended. True when that has just been learned.
  bool record_chain(bool success);
  const TrickScore& chain() const { return chain_; }
  // Everything before it is learned.
  bool chain_is_next() const { return !next() && rule_.score.mastered && !chain_.mastered; }
  // The first trick that is not learned yet; nothing when all are.
  std::optional<Cue> next() const;
  // One line for the player.
  std::string advice(const CueNames& names) const;
  // The next command of a game that gives the commands: mostly the lesson, sometimes a learned trick.
  Cue choose(std::uint32_t dice) const;

 private:
  struct Rule {
    TrickScore score;
    std::uint8_t last_five = 0;
    bool tempted = false;     // the pet has been there
    std::uint32_t begun = 0;  // actions in the current try
    bool good = true;
  };

  std::array<TrickScore, kTrickCount> scores_{};
  std::array<std::uint8_t, kTrickCount> last_five_{};  // a bit each, newest lowest
  Rule rule_;
  TrickScore chain_;
  std::uint8_t last_five_chains_ = 0;
};

std::size_t trick_index(Cue cue);  // in kTricks; not for Cue::none

}  // namespace pet

#include "samples/pet/lessons.h"

#include <algorithm>
#include <bit>

namespace pet {

size_t trick_index(Cue cue) { return static_cast<size_t>(std::find(kTricks.begin(), kTricks.end(), cue) - kTricks.begin()); }

bool Lessons::record(const Trial& trial) {
  const size_t trick = trick_index(trial.cue());
  TrickScore& score = scores_[trick];
  uint8_t& last = last_five_[trick];
  last = static_cast<uint8_t>((last << 1 | (trial.state() == Trial::State::kSuccess ? 1 : 0)) & 31);
  ++score.tries;
  const int good = std::popcount(last);
  score.success = static_cast<float>(good) / static_cast<float>(std::min(score.tries, 5u));
  if (score.mastered || good < 4) return false;
  score.mastered = true;
  return true;
}

std::optional<Cue> Lessons::next() const {
  for (const Cue cue : kOrder) {
    if (!scores_[trick_index(cue)].mastered) return cue;
  }
  return std::nullopt;
}

std::string Lessons::advice() const {
  const std::optional<Cue> cue = next();
  if (!cue) return "It knows all five. Try them in any order.";
  const TrickScore& score = scores_[trick_index(*cue)];
  const std::string word = std::string("\"") + name(*cue) + "\"";
  if (score.tries == 0) return "Next: say " + word + ", then show it how, or wait and praise.";
  return "Practise " + word + ": 4 of the last 5 and it is learned.";
}

Cue Lessons::choose(uint32_t dice) const {
  const std::optional<Cue> lesson = next();
  const uint32_t any = dice % kTrickCount;
  if (!lesson) return kTricks[any];
  const bool repeat = dice / kTrickCount % 3 == 0;
  return repeat && scores_[any].mastered ? kTricks[any] : *lesson;
}

}  // namespace pet

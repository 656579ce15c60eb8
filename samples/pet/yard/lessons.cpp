#include "samples/pet/yard/lessons.h"

#include <algorithm>
#include <bit>

namespace pet {

std::size_t trick_index(Cue cue) {
  return static_cast<std::size_t>(std::find(kTricks.begin(), kTricks.end(), cue) - kTricks.begin());
}

namespace {

// True when 4 of the last 5 were good for the first time.
bool count(TrickScore& score, std::uint8_t& last_five, bool success) {
  last_five = static_cast<std::uint8_t>((last_five << 1 | (success ? 1 : 0)) & 31);
  ++score.tries;
  const int good = std::popcount(last_five);
  score.success = static_cast<float>(good) / static_cast<float>(std::min(score.tries, 5u));
  if (score.mastered || good < 4) return false;
  score.mastered = true;
  return true;
}

}  // namespace

bool Lessons::record(const Trial& trial) {
  const std::size_t trick = trick_index(trial.cue());
  return count(scores_[trick], last_five_[trick], trial.state() == Trial::State::success);
}

bool Lessons::record_idle(bool sofa) {
  rule_.tempted = rule_.tempted || sofa;
  if (!rule_.tempted) return false;
  rule_.good = rule_.good && !sofa;
  if (++rule_.begun < kIdleTry) return false;
  const bool learned = count(rule_.score, rule_.last_five, rule_.good);
  rule_.begun = 0;
  rule_.good = true;
  return learned;
}

bool Lessons::record_chain(bool success) { return count(chain_, last_five_chains_, success); }

std::optional<Cue> Lessons::next() const {
  for (const Cue cue : kOrder) {
    if (!scores_[trick_index(cue)].mastered) return cue;
  }
  return std::nullopt;
}

std::string Lessons::advice(const CueNames& names) const {
  const std::optional<Cue> cue = next();
  if (chain_is_next())
    return "Last: two at once. Give a command, and with Shift (or a right click) the one to come after it.";
  if (!cue && rule_.score.mastered) return "It knows all there is to learn. Try it in any order.";
  if (!cue && !rule_.tempted)
    return "It knows all five. Leave it alone for a while: what does it do unasked?";
  if (!cue) return "Off the sofa! Scold (S) when it goes there or lies there, until it does other things.";
  const TrickScore& score = scores_[trick_index(*cue)];
  const std::string word = std::string("\"") + names.of(*cue) + "\"";
  if (score.tries == 0) return "Next: say " + word + ", then show it how, or wait and praise.";
  return "Practise " + word + ": 4 of the last 5 and it is learned.";
}

Cue Lessons::choose(std::uint32_t dice) const {
  const std::optional<Cue> lesson = next();
  const std::uint32_t any = dice % kTrickCount;
  if (!lesson) return kTricks[any];
  const bool repeat = dice / kTrickCount % 3 == 0;
  return repeat && scores_[any].mastered ? kTricks[any] : *lesson;
}

}  // namespace pet

#pragma once
// The host's part of self-play (BrainSpec::pool_size): what the weights in a brain's pool are, and how
// strong. The weights are state variables, "pool....", which a learn step fills. Saved, in snapshots. Frame
// thread.
//
// Ratings are Elo's: Elo, The Rating of Chessplayers, 1978. The newest weights have one rating, and each
// entry has its own, which begins as that of the weights it holds.

#include <cstdint>
#include <vector>

#include "plugin/agent/spec/brain_spec.h"

namespace imprint::agent {

// Numbers for the weights that an agent acts by.
inline constexpr std::uint32_t kNewestWeights = UINT32_MAX;       // and learns
inline constexpr std::uint32_t kDrawnOpponent = UINT32_MAX - 1;   // drawn from the pool, or the next
inline constexpr std::uint32_t kNewestOpponent = UINT32_MAX - 2;  // acts by the newest weights

struct Opponent {
  float rating = 0;
  std::uint64_t decisions = 0;  // of the brain, when it was kept
  std::uint64_t matches = 0;
};

class Opponents {
 public:
  Opponents() = default;
  explicit Opponents(const BrainSpec& spec);  // without pool_size it stays empty

  std::uint32_t count(std::uint32_t brain) const { return brains_[brain].count; }
  float rating(std::uint32_t brain) const { return brains_[brain].newest.rating; }
  // Errors of the caller: index is below count().
  const Opponent& at(std::uint32_t brain, std::uint32_t index) const { return brains_[brain].kept[index]; }
  // The newest weights with probability newest_share, else one of the pool, all alike; without any the
  // newest. The same draws follow after a save. seed: of the brain's exploration.
  std::uint32_t draw(std::uint32_t brain, std::uint64_t seed);

  // ---- keeping ----
  void request(std::uint32_t brain) { brains_[brain].wanted = true; }
  // Once decisions have passed BrainSpec::pool_period since the newest entry.
  void request_when_due(std::uint64_t decisions_of_brain);
  bool wanted() const;
  // The row of the pool's variables that this step fills, -1 = none. The oldest entry goes.
  std::int32_t keep(std::uint32_t brain, std::uint64_t decisions_of_brain);

  // ---- matches ----
  // who: kNewestWeights, kNewestOpponent, or an entry.
  Opponent& of(std::uint32_t brain, std::uint32_t who);
  // score: of the first, 0 .. 1.
  static void rate(Opponent& first, Opponent& second, float score);

  // Floats: per brain the newest rating, then those of all entries. Numbers: per brain next, count, wanted,
  // draws, decisions at the newest entry, matches of the newest; then decisions and matches of each entry.
  std::vector<float> ratings() const;
  std::vector<std::int64_t> numbers() const;
  static std::int64_t numbers_per_brain(const BrainSpec& spec) {
    return 6 + 2 * std::int64_t{spec.pool_size};
  }
  // Null or what is out of its range.
  const char* set(const std::vector<float>& ratings, const std::vector<std::int64_t>& numbers);

 private:
  struct OfBrain {
    Opponent newest;
    std::vector<Opponent> kept;  // [pool_size]
    std::uint32_t next = 0, count = 0;
    std::uint64_t draws = 0, kept_at = 0;
    bool wanted = false;
  };

  std::uint32_t size_ = 0;
  std::uint64_t period_ = 0;
  float newest_share_ = 0;
  std::vector<OfBrain> brains_;
};

}  // namespace imprint::agent

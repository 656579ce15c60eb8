#pragma once
// A league: brains of a run, kept at its checkpoints, that its games play against. No MPI: all ranks keep
// equal copies, since they get the same results.
//
// Opponents are drawn by how hard they are: an entry that the newest weights beat with probability p has
// weight (1 - p)^2 (Vinyals et al., Grandmaster level in StarCraft II using multi-agent reinforcement
// learning, 2019, prioritised fictitious self-play). Ratings are Elo's.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"

namespace imprint::studio {

class League {
 public:
  struct Entry {
    std::string brain;  // its file's name
    double rating = 0;
    double matches = 0, score = 0;  // of the newest weights against it: 1 a win, 0.5 a draw
    double chance() const { return (score + 1) / (matches + 2); }  // of the newest weights, by Laplace's rule
  };
  static constexpr std::size_t kMostEntries = 64;  // then the one that is beaten most surely goes
  static constexpr double kNewestShare = 0.5;      // of matches against the newest weights themselves

  const std::vector<Entry>& entries() const { return entries_; }
  double rating() const { return rating_; }
  // Which entry, or entries().size(): the newest weights. Uniform numbers below 1.
  std::size_t draw(double whether, double which) const;
  // It begins with the rating of the newest weights. Returns the file of an entry that went, or "".
  std::string keep(const std::string& brain);
  // [entries()] of all ranks since the call before.
  void take(std::span<const float> scores, std::span<const float> matches);

  // For checkpoints. Bounds for a text of n bytes: time O(n), memory 4 n + 16 KiB. An entry is a file of the
  // league's folder, none elsewhere. file: for messages. Errors: corrupt_file.
  std::string text() const;
  static Result<League> parse(const std::string& text, const std::string& file);

 private:
  std::vector<Entry> entries_;
  double rating_ = 1200;
};

}  // namespace imprint::studio

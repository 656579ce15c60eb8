#pragma once
// How quick is the player? A pet in a yard of its own does this and that; the player praises when it spins
// and scolds when it does anything else, as in play. The median of five right presses, from the onset of what
// it did, is where praise and scolding get their credit from then on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/yard/world.h"

namespace pet {

class ReactionTest {
 public:
  static constexpr std::uint32_t kPresses = 5;

  explicit ReactionTest(std::uint64_t seed);

  void step();  // 1/60 s
  // Presses that come before anything was to be seen, or with the wrong word, do not count.
  void press(bool praise);

  bool done() const { return times_.size() == kPresses; }
  std::uint32_t presses() const { return static_cast<std::uint32_t>(times_.size()); }
  double seconds() const;  // of the presses so far; 0 before the first
  const WorldView& view() const { return world_.view(); }
  // What to do, in one line.
  std::string words() const;

 private:
  void rest();

  World world_;
  Random random_;
  double next_s_ = 0.0;
  std::optional<double> onset_s_;  // of what has no press yet
  std::vector<double> times_;
};

}  // namespace pet

#pragma once
// Measures how quickly the player reacts. A pet in a separate yard acts now and then. The player praises a
// spin and scolds everything else. The median delay of five right presses, from the onset of the action,
// centres the credit of praise and scolding from then on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/yard/world.h"

namespace pet {

class ReactionMeter {
 public:
  static constexpr std::uint32_t kPresses = 5;

  explicit ReactionMeter(std::uint64_t seed);

  void step();  // 1/60 s
  // A press before an action, or with the wrong word, does not count.
  void press(bool praise);

  bool done() const { return times_.size() == kPresses; }
  std::uint32_t presses() const { return static_cast<std::uint32_t>(times_.size()); }
  double seconds() const;  // median of the presses so far; 0 before the first
  const WorldView& view() const { return world_.view(); }
  // An instruction for the player, in one line.
  std::string words() const;

 private:
  void rest();

  World world_;
  Random random_;
  double next_s_ = 0.0;
  std::optional<double> onset_s_;  // of an action without a press so far
  std::vector<double> times_;
};

}  // namespace pet

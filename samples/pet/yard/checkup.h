#pragma once
// An examination, out of sight and while play goes on: twenty greedy trials of every trick, each in a yard
// drawn for it, with the pet's own brain. Its worlds run ahead of the clock, so it is over within a second;
// it changes nothing in the brain.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "samples/pet/yard/mind.h"
#include "samples/pet/yard/trial.h"
#include "samples/pet/yard/world.h"

namespace pet {

inline constexpr std::uint32_t kTrialsPerTrick = 20;
inline constexpr std::uint32_t kTrialsPerPet = kTrialsPerTrick * kTrickCount;

// Successes of one pet, of kTrialsPerTrick each.
using Marks = std::array<std::uint32_t, kTrickCount>;

class Checkup {
 public:
  // probes[p] are the minds that sit for pet p.
  explicit Checkup(std::vector<std::vector<Mind*>> probes);

  // The yards depend on the seed only.
  void begin(std::uint64_t seed);
  bool running() const { return left_ > 0; }
  // Once a frame between its begin and its end. True in the frame in which the examination ended.
  bool step(std::uint64_t frame);

  const std::vector<Marks>& marks() const {
    return marks_;
  }  // of the newest examination, complete once it ended
  // What every trial's decisions were, in order of pet and trial: for comparing two brains exactly.
  const std::vector<std::vector<Action>>& decisions() const { return decisions_; }

 private:
  struct Seat {
    Mind* mind;
    std::size_t pet;
    std::uint32_t trial_number = 0;
    World world;
    Trial trial;
    std::optional<std::uint64_t> asked_frame;
  };

  bool next_trial(Seat& seat);
  void decide(Seat& seat, const Answer& answer);

  std::vector<Seat> seats_;
  std::uint64_t seed_ = 0;
  std::uint32_t left_ = 0;                 // trials that are not over
  std::vector<std::uint32_t> next_trial_;  // of each pet
  std::vector<Marks> marks_;
  std::vector<std::vector<Action>> decisions_;
};

float success(const Marks& marks);  // 0..1
float mean_success(const std::vector<Marks>& marks);
std::array<float, kTrickCount> mean_per_trick(const std::vector<Marks>& marks);

}  // namespace pet

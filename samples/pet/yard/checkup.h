#pragma once
// An examination during play: twenty greedy trials of every trick with the pet's own brain, each in a yard of
// its own. Its worlds run ahead of the clock, so it takes less than a second. It does not change the brain.

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
  // probes[p]: the minds that take the examination for pet p.
  explicit Checkup(std::vector<std::vector<Mind*>> probes);

  // The yards depend on the seed only.
  void begin(std::uint64_t seed);
  bool running() const { return left_ > 0; }
  // Once per frame, between frame_begin and frame_end. True in the frame in which the examination ends.
  bool step(std::uint64_t frame);

  const std::vector<Marks>& marks() const {
    return marks_;
  }  // of the newest examination, complete once it ended
  // The decisions of every trial, by pet and trial: compares two brains exactly.
  const std::vector<std::vector<Action>>& decisions() const { return decisions_; }

 private:
  struct Probe {
    Mind* mind;
    std::size_t pet;
    std::uint32_t trial_number = 0;
    World world;
    Trial trial;
    std::optional<std::uint64_t> asked_frame;
  };

  bool next_trial(Probe& probe);
  void decide(Probe& probe, const Answer& answer);

  std::vector<Probe> probes_;
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

#pragma once
// What tells a pet of one seed from that of another: how long it rests between two ideas, and what it likes
// to do when nobody asks for anything. The latter is nowhere set: it comes from the weights that it is born
// with, and from what becomes of them.

#include <cstdint>
#include <string>
#include <vector>

#include "samples/pet/yard/world_view.h"

namespace pet {

struct IdleDecision {
  double seconds = 0.0;
  Action action = Action::sit;
};

// Factor for the pauses between two ideas, 0.6 .. 1.5.
float pace_of(std::uint64_t seed);

// In a few words, from what it did of late: "lively, likes to bark". Empty while nothing stands out.
std::string temperament(const std::vector<IdleDecision>& idle, float pace);

}  // namespace pet

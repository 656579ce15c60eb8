#pragma once
// Differences between pets of different seeds: the pauses between idle actions, and their favourite ones.
// Nothing sets the favourites: they come from the weights.

#include <cstdint>
#include <string>
#include <vector>

#include "samples/pet/yard/world_view.h"

namespace pet {

struct IdleDecision {
  double seconds = 0.0;
  Action action = Action::sit;
};

// Factor for the pauses between idle actions, 0.6 .. 1.5.
float pace_of(std::uint64_t seed);

// A few words from recent idle actions: "lively, likes to bark". Empty while nothing stands out.
std::string temperament(const std::vector<IdleDecision>& idle, float pace);

}  // namespace pet

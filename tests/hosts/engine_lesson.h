#pragma once
// The pet taught in an engine's frames, the same frames drawn again without Imprint, and what frames take
// with and without it.

#include "tests/hosts/engine.h"
#include "tests/hosts/pupil.h"
#include "tests/hosts/watched_loader.h"

namespace imprint::hosts {

struct Lesson {
  EngineOptions engine;
  Access access = Access::record;
  double seconds = 20;
  std::uint64_t resize_at = 0;  // frame; 0 = never
};

struct Taught {
  std::vector<std::uint64_t> pictures;
  std::vector<Place> places;             // of the pet, each frame
  std::vector<std::uint32_t> decisions;  // of its examination
  GuestCalls calls;
  float success = 0;
  std::string faults;
};

// Failures are gtest failures.
Taught teach(const Lesson& lesson);
std::vector<std::uint64_t> draw_without_imprint(const EngineOptions& options,
                                                const std::vector<Place>& places);
// Prints the frame times of a host alone, with Imprint that infers, and with one that learns; no validation.
void print_frame_times(const char* name, EngineOptions options, Access access);

}  // namespace imprint::hosts

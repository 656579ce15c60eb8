#pragma once
// Teaches the pet in an engine's frames, draws the same frames without Imprint, and measures frame times with
// and without it.

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
  std::vector<Place> places;             // of the pet, per frame
  std::vector<std::uint32_t> decisions;  // of its examination
  GuestCalls calls;
  float success = 0;
  std::string faults;
};

// Failures are gtest failures.
Taught teach(const Lesson& lesson);
std::vector<std::uint64_t> draw_without_imprint(const EngineOptions& options,
                                                const std::vector<Place>& places);
// Prints a host's frame times without Imprint, with inference, and with learning; without validation.
void print_frame_times(const char* name, EngineOptions options, Access access);

}  // namespace imprint::hosts

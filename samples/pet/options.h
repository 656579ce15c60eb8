#pragma once
// The command line, with defaults filled in.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/brain/access.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/teacher.h"

struct imp_brain_desc;

namespace pet {

struct Options {
  bool headless = false;
  std::uint64_t seed = 1;
  double seconds = 180.0;  // simulated; 0 = until the window is closed
  TeacherKind teacher = TeacherKind::none;
  Learner learner = Learner::feedback;
  std::uint32_t kennel = 1;       // number of pets, each with its own brain
  std::string device;             // index or part of a name; empty = the best. With Access::cpu it only draws
  std::uint32_t budget_us = 500;  // GPU time per frame
  std::uint32_t slice_us = 1000;  // longest submission; 0 = no limit
  Access access = Access::record;
  bool validation = false;
  bool ghost = true;            // a second pet that does not learn
  bool fresh = false;           // the window starts with a new pet
  std::vector<PlanStage> plan;  // empty = all tricks all the time
  std::string save;
  std::string load;
  std::string report;
  std::string picture;
  std::string frames;
  std::string log;     // write the events here
  std::string replay;  // play the events of this log instead of a teacher
  // ---- not on the command line ----
  std::string memories;  // folder for the pet at each snapshot; empty = off
  // Changes each brain's description before it is made; empty = no change.
  std::function<void(imp_brain_desc&)> describe;
};

// Nothing: the program should exit with *status. Help or the error is already printed.
std::optional<Options> parse_options(int argc, const char* const* argv, int* status);

}  // namespace pet

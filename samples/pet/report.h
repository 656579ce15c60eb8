#pragma once
// The figures of a game, and their JSON.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/pet/brain/access.h"
#include "samples/pet/yard/learner.h"
#include "samples/pet/yard/teacher.h"
#include "samples/pet/yard/world_view.h"

namespace pet {

// A greedy examination of every trick. Means over the pets of a kennel.
struct Check {
  double seconds = 0.0;
  float success = 0.0f;                        // 0..1 over all tricks
  std::array<float, kTrickCount> per_trick{};  // in the order of kTricks
  std::optional<float> ghost;                  // success of the pet that does not learn
};

struct Spread {
  double median = 0.0;
  double p99 = 0.0;
  std::size_t frames = 0;  // number of values
};
Spread spread(std::vector<float> values);  // zeros without values

struct Report {
  std::string device;
  std::string driver;
  std::uint64_t seed = 0;
  TeacherKind teacher = TeacherKind::none;
  Learner learner = Learner::feedback;  // the learner in use at the end
  Access access = Access::record;
  std::uint32_t pets = 1;
  std::uint32_t budget_us = 0;
  std::uint32_t slice_us = 0;
  double simulated_seconds = 0.0;
  double wall_seconds = 0.0;
  std::uint64_t frames = 0;
  std::vector<Check> checks;
  float final_success = 0.0f;
  std::vector<float> final_per_pet;    // for a kennel
  std::optional<double> held_90_at_s;  // see held_90
  bool replayed = false;               // the events came from a log
  std::uint64_t decisions = 0;
  std::uint64_t feedbacks = 0;
  std::uint64_t demonstrations = 0;
  std::uint64_t minibatches = 0;
  std::uint64_t parameters = 0;  // of the brain in use
  std::uint32_t infer_dispatches = 0;
  std::uint32_t learn_dispatches = 0;
  Spread infer_gpu_us;  // of frames with such work
  Spread learn_gpu_us;
  Spread gpu_us;             // both together, of all measured frames
  Spread frame_cpu_us;       // inside Imprint, of all frames
  std::uint64_t slices = 0;  // pieces of learning that the GPU got one by one
  std::uint64_t over_budget_frames = 0;
  std::uint64_t frame_thread_compiles = 0;
  std::uint64_t frame_thread_allocations = 0;
  std::uint64_t frame_thread_waits = 0;
  std::uint32_t late_actions = 0;
  std::string weights_hash;  // empty if the brain could not be read back
  std::string log_problem;   // why the log is incomplete; empty: it is complete, or not asked for
  std::string save_problem;  // why the pet is not saved; empty: it is, or this was not asked for
};

// The time of the check that shows 90 % or more for 15 s: the second or a later one in a row.
std::optional<double> held_90(const std::vector<Check>& checks);
// Success in the newest check at or before a time; nothing before the first.
std::optional<float> success_at(const std::vector<Check>& checks, double seconds);
// Simulated seconds that a pet needs to learn from this teacher. Nothing where there is no bar: a person
// taught, or learning was off.
std::optional<double> lesson_seconds(TeacherKind teacher);
// Whether the pet learned what this teacher can teach: it ran minibatches, and its success is far above an
// untaught pet's. Nothing where there is no bar, for learners other than feedback, and for an unsuccessful
// session shorter than lesson_seconds.
std::optional<bool> learned(const Report& report);

std::string to_json(const Report& report);

}  // namespace pet

#pragma once
// A scripted player with human faults: it reacts late, misses some actions and misjudges others. It sees what
// a person sees (the yard, the onset of an action) and does what a person can do (send signals).

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "samples/pet/yard/random.h"
#include "samples/pet/yard/signal.h"
#include "samples/pet/yard/trial.h"
#include "samples/pet/yard/world.h"

namespace pet {

enum class TeacherKind : std::uint8_t {
  none,      // a person at the window
  demo,      // shows every trick once, then praises and scolds
  praise,    // praises and scolds only
  careless,  // shows every trick twice, then misses half and errs one time in seven
  off,       // praises and scolds a pet that does not learn
};

const char* name(TeacherKind kind);

// How the scripted teacher treats idle time, without commands.
enum class Idle : std::uint8_t {
  never,      // gives commands all the time
  free,       // leaves the pet alone
  forbidden,  // leaves it alone, but scolds it for the sofa, kMostScolds times at most
};

// The tricks that the scripted teacher asks for until a time.
struct PlanStage {
  std::vector<Cue> tricks;
  double until_s = 0.0;
  std::optional<float> wrong;  // share of feedback with the wrong sign; replaces the teacher's
  Idle idle = Idle::never;     // other values: no tricks in this stage
};

struct TeacherStyle {
  std::uint32_t demonstrations = 1;  // of each trick, before anything else
  float reacts = 0.8f;               // share of actions that get feedback
  float wrong = 0.05f;               // share of that feedback with the wrong sign
  float quickest_s = 0.5f;           // reaction time from the onset of an action
  float slowest_s = 1.1f;
  double pause_s = 1.0;  // between commands
};

// After this many scoldings the teacher gives up forbidding the sofa.
inline constexpr std::uint32_t kMostScolds = 10;

TeacherStyle teacher_style(TeacherKind kind);

class Teacher {
 public:
  // plan: stages in order; empty = all tricks. Each stage begins with demonstrations of its tricks.
  Teacher(const TeacherStyle& style, std::vector<PlanStage> plan, std::uint64_t seed, std::uint64_t stream);

  // The pet has begun an action by its own decision.
  void see_onset(double now_s, bool right);
  // The idle pet has begun an action; sofa: it goes to the sofa.
  void see_idle(double now_s, bool sofa);
  // Adds the signals of this frame, in order.
  void step(const World& world, const Trial& trial, std::vector<Signal>& signals);

 private:
  struct Reaction {
    double at_s;
    bool praise;
  };

  void enter_stage(std::size_t stage);

  TeacherStyle style_;
  std::vector<PlanStage> plan_;
  std::size_t stage_ = 0;
  Random random_;  // commands and reactions
  Random yards_;   // layouts of yards, the same whatever the pet does
  std::deque<Reaction> reactions_;
  std::vector<Cue> to_show_;
  double next_command_s_ = 0.0;
  bool waiting_ = false;      // a command is in force
  std::uint32_t scolds_ = 0;  // of this stage
};

}  // namespace pet

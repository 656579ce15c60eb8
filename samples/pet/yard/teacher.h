#pragma once
// A scripted player, as good and as bad as people are: it reacts late, misses some actions and is wrong about
// others. It sees what a person sees (the yard, and when an action begins) and does what a person can do
// (send signals).

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
  careless,  // shows every trick twice, then reacts half of the time and wrongly one time in seven
  off,       // praises and scolds a pet that does not learn
};

const char* name(TeacherKind kind);

// What the scripted teacher makes of a pet that nobody asked for anything.
enum class Idle : std::uint8_t {
  never,      // it is always asked for something
  free,       // leaves it to itself
  forbidden,  // leaves it to itself, and scolds when it is off to the sofa, ten times at most
};

// Which tricks the scripted teacher asks for until when.
struct PlanStage {
  std::vector<Cue> tricks;
  double until_s = 0.0;
  std::optional<float> wrong;  // share of feedback with the wrong sign, instead of the teacher's
  Idle idle = Idle::never;     // else there are no tricks in this stage
};

struct TeacherStyle {
  std::uint32_t demonstrations = 1;  // of each trick, before anything else
  float reacts = 0.8f;               // share of actions that get feedback
  float wrong = 0.05f;               // share of that feedback with the wrong sign
  float quickest_s = 0.5f;           // reaction time from the onset of an action
  float slowest_s = 1.1f;
  double pause_s = 1.0;  // between commands
};

// A teacher who forbids the sofa gives up after so many scoldings.
inline constexpr std::uint32_t kMostScolds = 10;

TeacherStyle teacher_style(TeacherKind kind);

class Teacher {
 public:
  // plan: which tricks until when; empty = all. Demonstrations are of the tricks of the stage under way.
  Teacher(const TeacherStyle& style, std::vector<PlanStage> plan, std::uint64_t seed, std::uint64_t stream);

  // An action of the pet's own has just begun.
  void see_onset(double now_s, bool right);
  // An action has begun that nobody asked for; sofa: it is off to the forbidden place.
  void see_idle(double now_s, bool sofa);
  // What it does in this frame, in order.
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
  Random yards_;   // where things are: the same yards whatever the pet does
  std::deque<Reaction> reactions_;
  std::vector<Cue> to_show_;
  double next_command_s_ = 0.0;
  bool waiting_ = false;      // a command is in force
  std::uint32_t scolds_ = 0;  // of this stage
};

}  // namespace pet

#pragma once
// What a body in the yard asks of its brain.

#include <array>
#include <optional>

#include "samples/pet/yard/world.h"

namespace pet {

struct Answer {
  Action action = Action::sit;
  std::array<float, kActionCount> expected{};  // how each action is believed to be received
};

class Mind {
 public:
  virtual ~Mind() = default;

  virtual void set_goal(Cue cue) = 0;
  // What the pet sees now, and that it wants to decide.
  virtual void ask(const Observation& observation, const Mask& mask) = 0;
  // The answer to the newest question, once it is there. Taking it begins the action.
  virtual std::optional<Answer> answer() = 0;
  virtual void feedback(float value, float weight, bool exact, double time_s) = 0;
  // What the action under way brought it, without anybody's word.
  virtual void reward(float value) = 0;
  virtual void demonstrate(const Observation& observation, Cue cue, Action action) = 0;
  // Nothing before now has to do with what comes.
  virtual void end_episode() = 0;
};

}  // namespace pet

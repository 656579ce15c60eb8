#pragma once
// The brain's interface to a body in the yard.

#include <array>
#include <optional>

#include "samples/pet/yard/world.h"

namespace pet {

struct Answer {
  Action action = Action::sit;
  std::array<float, kActionCount> expected{};  // the expected feedback of each action
};

class Mind {
 public:
  virtual ~Mind() = default;

  virtual void set_goal(Cue cue) = 0;
  // Asks for a decision in this situation.
  virtual void ask(const Observation& observation, const Mask& mask) = 0;
  // The answer to the newest question, if it is there. Taking it begins the action.
  virtual std::optional<Answer> answer() = 0;
  virtual void feedback(float value, float weight, bool exact, double time_s) = 0;
  // A reward of the game itself for the current action.
  virtual void reward(float value) = 0;
  virtual void demonstrate(const Observation& observation, Cue cue, Action action) = 0;
  // Ends the episode: later situations do not depend on earlier ones.
  virtual void end_episode() = 0;
};

}  // namespace pet

#pragma once
// The ways in which the pet's brain can learn: the one that the game is made for, and others to be compared
// with it in the same yard.

#include <array>
#include <cstdint>

namespace pet {

enum class Learner : std::uint8_t {
  feedback,  // predicts how each action will be received; also learns from what it is shown
  dqn,       // praise and scolding are rewards
  coach,     // praise and scolding say whether an action was better than what it is likely to do
  ppo,       // praise and scolding are rewards, of which it gathers many before it learns from them at once
};
inline constexpr std::array kLearners = {Learner::feedback, Learner::dqn, Learner::coach, Learner::ppo};

inline const char* name(Learner learner) {
  switch (learner) {
    case Learner::feedback:
      return "feedback";
    case Learner::dqn:
      return "dqn";
    case Learner::coach:
      return "coach";
    case Learner::ppo:
      return "ppo";
  }
  return "";
}

}  // namespace pet

#pragma once
// The pet's learners. The game is made for `feedback`; the others are for comparison.

#include <array>
#include <cstdint>

namespace pet {

enum class Learner : std::uint8_t {
  feedback,  // predicts how each action will be received; also learns from what it is shown
  dqn,       // praise and scolding are rewards
  coach,     // praise and scolding are advantages: better or worse than its usual action
  ppo,       // praise and scolding are rewards; it gathers many, then learns from all
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

#ifndef IMPRINT_SAMPLES_PET_YARD_LEARNER_H_
#define IMPRINT_SAMPLES_PET_YARD_LEARNER_H_
// The ways in which the pet's brain can learn: the one that the game is made for, and others to be compared
// with it in the same yard.

#include <array>
#include <cstdint>

namespace pet {

enum class Learner : uint8_t {
  kFeedback,  // predicts how each action will be received; also learns from what it is shown
  kDqn,       // praise and scolding are rewards
  kCoach,     // praise and scolding say whether an action was better than what it is likely to do
  kPpo,       // praise and scolding are rewards, of which it gathers many before it learns from them at once
};
inline constexpr std::array kLearners = {Learner::kFeedback, Learner::kDqn, Learner::kCoach, Learner::kPpo};

inline const char* name(Learner learner) {
  switch (learner) {
    case Learner::kFeedback:
      return "feedback";
    case Learner::kDqn:
      return "dqn";
    case Learner::kCoach:
      return "coach";
    case Learner::kPpo:
      return "ppo";
  }
  return "";
}

}  // namespace pet

#endif  // IMPRINT_SAMPLES_PET_YARD_LEARNER_H_

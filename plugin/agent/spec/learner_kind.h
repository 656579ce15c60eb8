#pragma once
// The list of learners. learn/learner.h says what a learner is; docs/adding-a-learner.md how to add one.

#include <cstdint>

namespace imprint::agent {

// One entry per learner, in the order of imp_learner, which saved brains depend on: append only.
// ENTRY(feedback) stands for feedback_learner() in learn/learners/feedback.h.
#define IMPRINT_LEARNERS(ENTRY) \
  ENTRY(feedback)               \
  ENTRY(cloning)                \
  ENTRY(dqn)                    \
  ENTRY(coach)                  \
  ENTRY(ppo)                    \
  ENTRY(sac)                    \
  ENTRY(bandit)                 \
  ENTRY(pqn)                    \
  ENTRY(es)

#define IMPRINT_KIND(name) , name
enum class LearnerKind : std::uint8_t { none IMPRINT_LEARNERS(IMPRINT_KIND) };
#undef IMPRINT_KIND

#define IMPRINT_NAME(name) , #name
inline constexpr const char* kLearnerNames[] = {"none" IMPRINT_LEARNERS(IMPRINT_NAME)};
#undef IMPRINT_NAME

inline constexpr auto kLastLearner =
    static_cast<LearnerKind>(sizeof kLearnerNames / sizeof *kLearnerNames - 1);

// kind: at most kLastLearner.
constexpr const char* learner_name(LearnerKind kind) {
  return kLearnerNames[static_cast<std::uint8_t>(kind)];
}

}  // namespace imprint::agent

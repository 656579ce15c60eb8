#include "plugin/agent/learn/learner_kind.h"

namespace imprint::agent {

const LearnerTraits& traits_of(LearnerKind kind) {
  static constexpr LearnerTraits kNone{.name = "none",
                                       .one_branch = false,
                                       .continuous = true,
                                       .feedback = false,
                                       .demonstrations = false,
                                       .follows = false,
                                       .off_policy = false,
                                       .looks_ahead = false,
                                       .replays = false,
                                       .rollouts = false,
                                       .draws_actions = false};
  static constexpr LearnerTraits kFeedback{.name = "feedback",
                                           .one_branch = true,
                                           .continuous = false,
                                           .feedback = true,
                                           .demonstrations = true,
                                           .follows = false,
                                           .off_policy = true,
                                           .looks_ahead = false,
                                           .replays = true,
                                           .rollouts = false,
                                           .draws_actions = false};
  static constexpr LearnerTraits kCloning{.name = "cloning",
                                          .one_branch = false,
                                          .continuous = true,
                                          .feedback = false,
                                          .demonstrations = true,
                                          .follows = false,
                                          .off_policy = true,
                                          .looks_ahead = false,
                                          .replays = true,
                                          .rollouts = false,
                                          .draws_actions = false};
  static constexpr LearnerTraits kDqn{.name = "dqn",
                                      .one_branch = true,
                                      .continuous = false,
                                      .feedback = true,
                                      .demonstrations = false,
                                      .follows = true,
                                      .off_policy = true,
                                      .looks_ahead = true,
                                      .replays = true,
                                      .rollouts = false,
                                      .draws_actions = false};
  static constexpr LearnerTraits kCoach{.name = "coach",
                                        .one_branch = false,
                                        .continuous = false,
                                        .feedback = true,
                                        .demonstrations = false,
                                        .follows = true,
                                        .off_policy = false,
                                        .looks_ahead = false,
                                        .replays = false,
                                        .rollouts = false,
                                        .draws_actions = true};
  static constexpr LearnerTraits kPpo{.name = "ppo",
                                      .one_branch = false,
                                      .continuous = false,
                                      .feedback = true,
                                      .demonstrations = false,
                                      .follows = true,
                                      .off_policy = false,
                                      .looks_ahead = true,
                                      .replays = false,
                                      .rollouts = true,
                                      .draws_actions = true};
  switch (kind) {
    case LearnerKind::none:
      break;
    case LearnerKind::feedback:
      return kFeedback;
    case LearnerKind::cloning:
      return kCloning;
    case LearnerKind::dqn:
      return kDqn;
    case LearnerKind::coach:
      return kCoach;
    case LearnerKind::ppo:
      return kPpo;
  }
  return kNone;
}

}  // namespace imprint::agent

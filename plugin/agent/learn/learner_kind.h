#pragma once
// The learners, and what sets them apart for everybody who need not know which one it is. How each learns:
// objective.h, trace_graph.h, rollout_graph.h.

#include <cstdint>

namespace imprint::agent {

enum class LearnerKind : std::uint8_t { none, feedback, cloning, dqn, coach, ppo };
inline constexpr LearnerKind kLastLearner = LearnerKind::ppo;

struct LearnerTraits {
  const char* name;
  bool one_branch;      // rates the choices of exactly one branch
  bool continuous;      // serves continuous actions
  bool feedback;        // learns from praise and scolding, and from rewards
  bool demonstrations;  // learns from what it is shown
  bool follows;         // its samples are whole steps: what was done, what came of it, and what was seen next
                        // (trail.h)
  bool off_policy;      // of the steps: also those that the game chose by itself
  bool looks_ahead;     // of a step: also at what was seen next
  bool replays;  // draws minibatches from a memory; else each sample is learned from as it comes, and is then
                 // forgotten
  bool rollouts;       // learns once there are rollout_steps samples, all of them done by the weights of now
  bool draws_actions;  // acts by a draw from the softmax of its outputs; else by the highest of them, with
                       // noise
};

const LearnerTraits& traits_of(LearnerKind kind);
inline const char* learner_name(LearnerKind kind) { return traits_of(kind).name; }

}  // namespace imprint::agent

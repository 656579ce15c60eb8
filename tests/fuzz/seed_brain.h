#pragma once
// The brain that the saved files of the corpus hold: small, and with replay memory.

#include "plugin/agent/keep/saved_brain.h"

namespace imprint::fuzz {

inline agent::BrainSpec seed_brain() {
  agent::BrainSpec spec;
  spec.name = "seed";
  spec.observation.count = 2;
  spec.action.branch_sizes = {2};
  spec.hidden_sizes = {2};
  spec.learner = agent::LearnerKind::feedback;
  spec.batch_size = 2;
  spec.replay_capacity = 4;
  return spec;
}

// A learner of what actors send.
inline agent::BrainSpec receiving_brain(agent::LearnerKind learner) {
  agent::BrainSpec spec = seed_brain();
  spec.learner = learner;
  spec.brain_count = 2;
  spec.agents_per_brain = 2;
  spec.goal_count = 2;
  spec.rollout_steps = spec.batch_size = 2;
  return spec;
}

// `body` in an envelope with the hashes that it should have.
std::vector<std::byte> enveloped(std::span<const std::byte> body, const agent::BrainSpec& spec);

}  // namespace imprint::fuzz

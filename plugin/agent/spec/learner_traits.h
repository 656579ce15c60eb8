#pragma once
// Answers of a learner that a brain's shape depends on. spec/ and decide/ know no learners: the functions are
// in learn/registry.cpp, which asks Learner.

namespace imprint::agent {

struct BrainSpec;

// Parts that a learner's network has beside its layers, and how it differs from a plain one.
struct NetworkTraits {
  bool orthogonal = false;  // first weights of layers and cells, and biases that begin at 0; else uniform
  bool zero_head = false;   // the last layer's first weights are 0
  bool normalised_layers = false;  // layer normalisation without gain and bias before each activation
  bool squashed_actions = false;   // outputs have a log deviation per number of an action, which tanh bounds
  bool log_deviation = false;      // Network::log_deviation, where actions have numbers
  bool change_epsilon = false;     // Network::change_epsilon
  bool heard = false;              // Network::heard, usual and trust
  bool belief = false;             // Network::belief
};

NetworkTraits network_traits(const BrainSpec& spec);  // without a learner: a plain network
// Whether samples of a brain wait until there are rollout_steps of them.
bool collects_rollouts(const BrainSpec& spec);

}  // namespace imprint::agent

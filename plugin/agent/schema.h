#pragma once
// What a brain is made of, before any tensor: its senses, its actions, its learner and the sizes of
// everything. Sizes are free.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/base/hash.h"
#include "compute/base/result.h"
#include "plugin/agent/learn/learner_kind.h"

namespace imprint::agent {

struct ObservationSpec {
  std::uint32_t count = 0;   // floats an observation, >= 1
  std::vector<float> scale;  // count factors applied before the network; empty = 1
};

// An action is one choice a branch and `continuous_count` numbers in [-1, 1]. The network's outputs for one
// goal lie in this order: the choices of branch 0, of branch 1, ..., then the continuous actions.
struct ActionSpec {
  std::vector<std::uint32_t> branch_sizes;  // each >= 2
  std::uint32_t continuous_count = 0;

  std::uint32_t choice_count() const;                     // sum of the branch sizes
  std::uint32_t output_count() const;                     // choices and continuous actions
  std::uint32_t branch_offset(std::size_t branch) const;  // first choice of a branch among all choices
};

enum class Activation : std::uint8_t { relu, tanh, silu, elu, gelu };

struct BrainSpec {
  std::string name = "brain";
  ObservationSpec observation;
  ActionSpec action;
  std::uint32_t goal_count = 1;  // heads: each goal has its own row of outputs in the last layer
  std::vector<std::uint32_t> hidden_sizes = {64, 64};
  Activation activation = Activation::relu;
  std::uint32_t brain_count = 1;  // P: brains of one shape, each with its own weights, optimiser and memory
  std::uint32_t agents_per_brain = 1;  // A
  std::uint64_t seed = 0;              // brain p of a kennel is made as a single brain with seed + p
  std::uint32_t action_latency_frames = 2;
  std::uint32_t decision_period_frames = 1;  // agents of a brain take turns

  LearnerKind learner = LearnerKind::none;
  std::uint32_t learn_period_frames = 6;
  std::uint32_t batch_size = 32;
  std::uint32_t replay_capacity = 4096;
  float learning_rate = 1e-3f;
  float max_gradient_norm = 1.0f;  // 0 = no clip
  float exploration = 0.2f;
  float margin = 0.5f;
  float margin_weight = 0.3f;
  float credit_delay_s = 0.8f;
  float credit_width_s = 0.6f;
  float discount = 0.99f;            // of what an action leads to
  std::uint32_t target_period = 50;  // minibatches between two steps of the target network
  float target_rate = 1;             // how far it goes then
  bool double_estimate = false;
  float epsilon = 0;  // share of random choices, once epsilon_decisions have passed
  std::uint32_t epsilon_decisions = 0;
  float trace_decay = 0;
  std::uint32_t rollout_steps = 128;  // of all agents of a brain together
  std::uint32_t epochs = 4;           // over a rollout, in minibatches of batch_size
  float advantage_decay = 0.95f;
  float clip_range = 0.2f;
  float entropy_coefficient = 0.005f;
  std::uint32_t snapshot_count = 4;

  std::uint32_t seat_count() const { return brain_count * agents_per_brain; }
  std::uint32_t turn_of(std::uint32_t seat) const { return seat % agents_per_brain % decision_period_frames; }
  // Of the n-th decision of a seat: from 1 down to epsilon in a straight line.
  float random_share(std::uint64_t decision) const {
    if (decision >= epsilon_decisions) return epsilon;
    return 1 - (1 - epsilon) * static_cast<float>(decision) / static_cast<float>(epsilon_decisions);
  }
  std::uint32_t agents_per_turn() const {
    return (agents_per_brain - 1) / decision_period_frames + 1;
  }                                                // of one brain, at most
  std::vector<std::uint32_t> layer_sizes() const;  // observation, hidden..., goals * outputs
  std::uint64_t parameter_count() const;           // weights and biases of all brains
};

// Errors: invalid_argument with the call, the field, its value and its range.
Status check_range(const char* call, const char* field, std::uint32_t value, std::uint32_t low,
                   std::uint32_t high);
// Errors: invalid_argument (not UTF-8).
Status check_name(const char* call, std::string_view name);

// Errors: invalid_argument with the field, its value and its range; unsupported when the learner cannot serve
// that action.
Status validate(const BrainSpec& spec);

// Of everything that a saved brain must have in common with the brain that loads it: senses, actions, goals,
// network, number of brains and agents, learner and the size of its memory. Rates, noise, timing and seeds
// may differ.
Hash128 schema_hash(const BrainSpec& spec);
// Of what weights need to mean the same in both: senses and their scale, actions, goals, network and number
// of brains.
Hash128 network_hash(const BrainSpec& spec);

// The same in words, for messages: "28 observations, 6 goals, actions 10, network 28-64-64-60 relu, 1 brain
// of 1 agent, feedback, replay 4096".
std::string schema_text(const BrainSpec& spec);

const char* activation_name(Activation activation);

}  // namespace imprint::agent

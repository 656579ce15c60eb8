#pragma once
// Describes a brain before any tensor exists: observations, actions, learner, and every size.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plugin/agent/spec/learner_kind.h"

namespace imprint::agent {

inline constexpr std::uint32_t kMaxSize = 1u << 20;  // of one count; keeps products below within 64 bits
// Bounds of a chosen latency, BrainSpec::action_latency_frames 0. A host tells its frames in flight by
// safe_frame: the latency grows with them.
inline constexpr std::uint32_t kFirstLatency = 2, kMostChosenLatency = 4;
inline constexpr std::uint64_t kMaxElements = 1ull << 31;  // of one tensor
inline constexpr std::uint32_t kMostStacked = 64, kMostCells = 4096, kMostSequence = 256, kMostStreams = 16;

// A part of an observation, with its encoder. In the order of imp_stream_kind.
enum class StreamKind : std::uint8_t { vector, picture, entities, ids };

struct StreamSpec {
  StreamKind kind = StreamKind::vector;
  std::uint32_t count = 0;                            // numbers of a vector; most entities; ids
  std::uint32_t channels = 0, height = 0, width = 0;  // of a picture
  std::uint32_t features = 0;                         // of an entity
  std::uint32_t vocabulary = 0;                       // ids are below it
  std::uint32_t size = 0;                             // outputs: of a picture, a set, an id; 0: chosen

  std::uint64_t numbers() const;  // of an observation
  std::uint32_t outputs() const;  // size, or the chosen one
};

struct ObservationSpec {
  std::uint32_t count = 0;   // floats per observation, >= 1
  std::vector<float> scale;  // [count] factors applied before the network; empty = 1
  std::uint32_t stack = 1;   // newest observations of an agent that the network sees, the oldest first

  std::vector<StreamSpec> streams;  // in the observation's order; empty: one vector

  std::uint32_t width() const { return count * stack; }  // numbers that the network sees
  std::uint64_t encoded_count() const;                   // numbers that the hidden layers see
};

// An action is one choice per branch and `continuous_count` numbers in [-1, 1].
// Order of the network's outputs for one goal: the choices of branch 0, of branch 1, ..., then the continuous
// actions.
struct ActionSpec {
  std::vector<std::uint32_t> branch_sizes;  // each >= 2
  std::uint32_t continuous_count = 0;

  std::uint32_t choice_count() const;                     // sum of the branch sizes
  std::uint32_t output_count() const;                     // choices and continuous actions
  std::uint32_t branch_offset(std::size_t branch) const;  // first choice of a branch among all choices
};

enum class Activation : std::uint8_t { relu, tanh, silu, elu, gelu };

// A recurrent cell between the hidden layers and the outputs. In the order of imp_cell.
enum class Cell : std::uint8_t { none, gru, lstm };

// In the order of imp_curiosity.
enum class Curiosity : std::uint8_t { novelty, surprise };

// Defaults are for C++ that makes a spec by hand, as tests do. brain_create and imprint bake take those of
// the C structs' init functions (option_fields.h).
struct BrainSpec {
  std::string name = "brain";
  ObservationSpec observation;
  ActionSpec action;
  std::uint32_t goal_count = 1;  // heads: each goal has its own outputs in the last layer
  std::vector<std::uint32_t> hidden_sizes = {64, 64};
  Activation activation = Activation::relu;
  Cell cell = Cell::none;
  std::uint32_t cell_size = 64;
  std::uint32_t sequence_steps = 32;  // that learning goes back through a cell
  std::uint32_t brain_count = 1;  // P: brains of one shape, each with its own weights, optimiser and memory
  std::uint32_t agents_per_brain = 1;        // A
  std::uint64_t seed = 0;                    // brain p of a kennel starts as a single brain with seed + p
  std::uint32_t action_latency_frames = 2;   // 0: chosen, kFirstLatency to kMostChosenLatency
  std::uint32_t decision_period_frames = 1;  // agents of a brain take turns

  LearnerKind learner = LearnerKind::none;
  std::uint32_t learn_period_frames = 6;
  std::uint32_t batch_size = 32;
  std::uint32_t replay_capacity = 4096;
  bool pictures_as_bytes = false;  // in the replay memory: learn/samples/replay_memory.h
  float learning_rate = 1e-3f;
  float max_gradient_norm = 1.0f;    // 0 = no clip
  std::uint32_t rate_half_life = 0;  // minibatches until half the learning rate; 0 = it does not fall
  float exploration = 0.2f;
  float margin = 0.5f;
  float margin_weight = 0.3f;
  float credit_delay_s = 0.8f;
  float credit_width_s = 0.6f;
  float discount = 0.99f;
  std::uint32_t target_period = 50;  // minibatches between two updates of the target network
  float target_rate = 1;             // share of the way to the network that an update goes
  bool double_estimate = false;
  bool squared_loss = false;   // else Huber's
  bool dueling = false;        // a network of the state's value beside that of the choices
  std::uint32_t n_step = 1;    // rewards summed before the target network's estimate
  bool follow_changes = true;  // steps from before a change are drawn seldom: learn/learners/recall.h
  float epsilon = 0;           // share of random choices after epsilon_decisions
  std::uint32_t epsilon_decisions = 0;  // of a brain, all its agents
  float trace_decay = 0;                // lambda
  std::uint32_t rollout_steps = 128;    // per brain, all its agents together
  std::uint32_t epochs = 4;             // over a rollout, in minibatches of batch_size
  float advantage_decay = 0.95f;
  float clip_range = 0.2f;
  float entropy_coefficient = 0.005f;
  float value_coefficient = 0.5f;
  float max_divergence = 0;  // stops an update; 0 = no limit
  bool clip_values = false;
  bool normalise_observations = false;
  bool normalise_rewards = false;
  std::uint32_t rate_decisions = 0;  // of a brain until PPO's learning rate is 0; 0 = it stays
  bool slow_noise = false;           // of continuous actions: DecisionDraw::slow
  float entropy_per_action = -1;     // target of the policy's entropy, per number of an action
  bool thompson = true;              // the bandit learner draws from its belief, else LinUCB
  float drift = 0;                   // of the bandit learner's weights, per sample
  // Demonstrations beside a learner of rewards. 0: none.
  std::uint32_t demonstration_capacity = 0, demonstration_batch = 32;
  std::uint32_t pretraining = 0;  // minibatches by them alone, where there are no steps yet
  std::uint32_t demonstration_half_life =
      0;                              // minibatches until they count half; 0 = they count the same for ever
  float demonstration_strength = 1;   // of their loss
  float demonstration_margin = 0.8f;  // of the DQN learner: how much less another choice is worth
  // Rewards of the learner's own beside the game's (learn/learners/signals.h). Strength 0: without it.
  float reward_strength = 1, curiosity_strength = 0, imitation_strength = 0;
  float curiosity_discount = 0, imitation_discount = 0;  // 0: the learner's
  Curiosity curiosity = Curiosity::novelty;
  std::uint32_t signal_size = 64;  // of their hidden layers
  float signal_rate = 3e-4f;
  std::uint32_t group_size = 0;  // most agents of a group, whose critic sees them all; 0: no groups
  // Self-play: weights of old that agents may act by (learn/samples/opponents.h). 0: none.
  std::uint32_t pool_size = 0;
  std::uint32_t pool_period = 20'000;  // decisions of a brain until it keeps its weights; 0: by call alone
  float newest_share = 0.5f;           // of drawn opponents that act by the newest weights
  std::uint32_t snapshot_count = 4;
  bool fall_back = false;  // to the best weights so far, where returns fall or a loss is not finite
  // Processes that learn this brain by the same minibatches: nn::RolloutPpoOptions,
  // ProgramSequence::all_reduce.
  std::uint32_t process_count = 1, process_index = 0;
  std::uint32_t shards = 1;
  std::function<void(std::span<float>)> all_reduce;
  // Actors and learners in processes apart: an actor learns nothing, and its samples wait to be sent; PPO
  // corrects received ones by V-trace (learn/training/sent_experience.h).
  bool sends_experience = false, receives_experience = false;

  std::uint32_t agent_capacity() const { return brain_count * agents_per_brain; }
  // The turn, of decision_period_frames that frames take one after the other, in which an agent decides.
  std::uint32_t turn_of(std::uint32_t agent) const {
    return agent % agents_per_brain % decision_period_frames;
  }
  // Share of random choices at a brain's n-th decision: falls linearly from 1 to epsilon.
  float random_share(std::uint64_t decision) const {
    if (decision >= epsilon_decisions) return epsilon;
    return 1 - (1 - epsilon) * static_cast<float>(decision) / static_cast<float>(epsilon_decisions);
  }
  std::uint32_t agents_per_turn() const {
    return (agents_per_brain - 1) / decision_period_frames + 1;
  }  // per brain, at most
  bool keeps_demonstrations() const { return demonstration_capacity > 0; }
  bool has_signals() const { return curiosity_strength > 0 || imitation_strength > 0; }
  // Numbers of a group: how many are there, then the observations of group_size agents.
  std::uint32_t group_width() const { return group_size > 0 ? 1 + group_size * observation.width() : 0; }
  std::uint32_t signal_count() const {
    return (curiosity_strength > 0 ? 1u : 0u) + (imitation_strength > 0 ? 1u : 0u);
  }
  bool learns() const { return learner != LearnerKind::none; }
  bool has_cell() const { return cell != Cell::none; }
  // Whether a learner's critic uses the policy's layers: encoders and cells are too dear to have twice.
  bool shares_trunk() const { return has_cell() || !observation.streams.empty(); }
  std::uint32_t gate_count() const { return cell == Cell::lstm ? 4 : 3; }
  // Numbers of an agent's state: the cell's outputs, then an LSTM's cells.
  std::uint32_t state_count() const {
    return cell == Cell::none ? 0 : cell_size * (cell == Cell::lstm ? 2 : 1);
  }
  std::vector<std::uint32_t> layer_sizes() const;  // encoded numbers, hidden..., cell, goals * outputs
  // Outputs of the network for one goal: one per output of the action, and NetworkTraits::squashed_actions.
  std::uint32_t head_count() const;
  std::uint64_t parameter_count() const;  // weights and biases, all brains
};

const char* activation_name(Activation activation);
const char* cell_name(Cell cell);
const char* curiosity_name(Curiosity curiosity);
const char* stream_name(StreamKind kind);

}  // namespace imprint::agent

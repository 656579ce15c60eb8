#pragma once
// Proximal policy optimisation (PPO) for many agents that share one policy. The learner's state lives on the
// device; these programs act and learn:
//
//   step    takes the observations and the results of the last actions, returns the next actions
//   update  after `steps` steps: advantages, then epochs over shuffled minibatches
//   greedy  the most likely actions, for agents that do not learn
//
// Memory holds two rollouts, and the actors have their own copy of the weights, which the end of an update
// replaces. An update may therefore be spread over the frames of the next rollout, and each rollout is
// collected with one version of the weights. To take the first action after an update with the new weights,
// observe and act separately:
//
//   loop: step x (steps - 1); observe; update; act
//
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/learners/environment.h"
#include "compute/nn/learners/rollout_ppo.h"
#include "compute/nn/learners/running_moments.h"
#include "compute/nn/modules/activation.h"
#include "compute/nn/modules/sequential.h"
#include "compute/nn/parameter.h"
#include "compute/program/program_sequence.h"

namespace imprint::nn {

struct PpoOptions {
  std::string name = "ppo";
  std::int64_t agents = 1;
  std::int64_t observations = 1;  // numbers per observation
  ActionSpace action = {};
  bool masked = false;                          // observations come with a mask of the allowed choices
  std::vector<std::int64_t> hidden = {64, 64};  // of the policy network and of the value network
  Activation activation = Activation::tanh;
  double log_deviation = 0;  // initial, of continuous actions
  // Layers before policy and value, which share them, such as nature_cnn of pictures: called twice, with the
  // names of the learner's and the actors' copy. [n, observations] -> [n, features]. Empty: none.
  std::function<Module(const std::string& name)> trunk = {};
  std::int64_t features = 0;  // of the trunk

  std::int64_t steps = 128;      // per agent and rollout
  std::int64_t minibatch = 256;  // divides agents * steps
  std::int64_t epochs = 4;
  double discount = 0.99;
  double advantage_decay = 0.95;
  double value_coefficient = 0.5;
  double entropy_coefficient = 0.005;
  double max_gradient_norm = 0.5;
  double adam_epsilon = 1e-5;
  double max_divergence = 0;  // an update stops once a minibatch exceeds it; 0: no limit
  bool clip_values = false;
  bool standardise_advantages = true;  // within each minibatch
  bool bootstrap_truncated = true;     // false: a truncated episode ends with value 0, as in CleanRL
  bool normalise_observations = false;
  bool normalise_rewards = false;  // by the deviation of the discounted return
  std::uint64_t seed = 1;
  // Processes that learn the same minibatches, each with `agents` and `minibatch` of its own: RolloutPpo. The
  // caller sets ProgramSequence::all_reduce of the update, or of the sequence that it becomes part of. Each
  // process has the same parameters at the start, and other environments. Not with normalised observations or
  // rewards, which each process would normalise in its own way.
  std::int64_t process_count = 1, process_index = 0;
};

// The parts of one step program.
struct PpoStep {
  bool observe = true;     // stores observations and the results of the last actions
  bool act = true;         // samples actions
  bool truncates = false;  // with observe: an episode was truncated; its last observation is an input
};

// Inputs of a step that observes, in this order:
//   observation       float32 [agents, observations]: now; after a reset where an episode ended
//   reward            float32 [agents]: of the last action; not read at the very first step, as the next two
//   terminated        bool [agents]: the last action ended the episode
//   truncated         bool [agents]: a time limit ended the episode
//   last_observation  float32 [agents, observations], with PpoStep::truncates: of the episode that ended,
//                     where truncated; ignored elsewhere
//   mask              bool [agents, choices], when masked
// Outputs of a step that acts: int32 [agents, branches] if there are branches, then float32 [agents,
// continuous] if there are continuous numbers.
//
// Inputs of the update: learning_rate and clip_range, float32 scalars. Output: float32 [kPpoMetrics], a
// PpoMetric each.
class Ppo {
 public:
  // Error: invalid_argument for sizes out of range.
  static Result<Ppo> create(const PpoOptions& options);

  Result<ProgramDescription> step(const PpoStep& what = {}) const;
  Result<ProgramSequence> update() const;
  // Inputs: observation [rows, observations], and mask [rows, choices] when masked. Outputs: as a step's.
  Result<ProgramDescription> greedy(std::int64_t rows) const;

  // With environments on the device: run start() once, then again and again a sequence of one rollout() and
  // the parts of update():
  //   sequence.parts = {rollout} + update().parts
  // Errors: invalid_argument when the environments differ from the options in count, observations or actions;
  // unsupported when masked.
  Result<ProgramDescription> start(const Environments& environments) const;
  Result<ProgramPart> rollout(const Environments& environments) const;
  // `turns` steps of the most likely actions, after a restart. Pass separate Environments: those of the
  // rollout would restart too. Output: float32 [1], the mean return of each copy's first episode, or of the
  // part of it that fits.
  Result<ProgramSequence> judge(const Environments& environments, std::uint32_t turns) const;

  const PpoOptions& options() const { return options_; }
  // The weights that the next update starts from, and those that actors use.
  const Parameters& parameters() const { return learner_.parameters; }
  const Parameters& acting_parameters() const { return actor_.parameters; }
  // The rest of a learner's state, for an exact resume: moments, normalisers, counters, memory.
  const Parameters& state() const { return state_; }

 private:
  struct ActorCritic {
    Module trunk;  // identity without one
    Sequential policy{"policy"}, value{"value"};
    Variable log_deviation;
    Parameters parameters;

    Tensor value_of_features(const Tensor& features) const { return squeeze(value(features), 1); }
    Tensor value_of(const Tensor& observation) const { return value_of_features(trunk(observation)); }
  };
  // Time-major: [2 steps, agents, ...].
  struct Memory {
    Variable observation, mask, discrete, continuous, log_probability, value;
    Variable reward, continues;  // of the action; 1 where the episode continued
    Variable counts;             // 1 where the next state has a value: 0 where the episode terminated
    Variable ending;             // last observation of a truncated episode
  };
  explicit Ppo(const PpoOptions& options);
  ActorCritic network(const std::string& name) const;
  ActionDistribution distribution(const ActorCritic& by, const Tensor& features, const Tensor& mask) const;
  std::vector<Tensor> flat(const Actions& actions) const;

  // Observations and the results of the last actions. All but observation may be empty: the results after a
  // start, last_observation and mask where there are none.
  struct Experience {
    Tensor observation, reward, terminated, truncated, last_observation, mask;
  };
  // An observation as memory holds it. row: int32 [1].
  struct Seen {
    Tensor observation, mask, row;
  };
  Experience experience(ProgramDescription& program, bool truncates) const;
  Seen observe(const Experience& experience, std::vector<Update>& updates) const;
  void observe_outcome(const Experience& experience, std::vector<Update>& updates) const;
  Seen remembered() const;
  Actions act(const Seen& seen, std::vector<Update>& updates) const;
  Result<> validate(const Environments& environments) const;

  RolloutPpo make_update() const;
  RolloutRows whole_rollout() const;
  RolloutRows rows(const Tensor& chosen) const;

  std::int64_t samples() const { return options_.agents * options_.steps; }

  PpoOptions options_;
  ActorCritic learner_, actor_;
  Tensor learning_rate_ = input("learning_rate", {}), clip_range_ = input("clip_range", {});
  RolloutPpo update_;
  Memory memory_;
  Variable first_;  // int32 [1]: the rollout's first row in memory
  Variable clock_;  // int32 [1]: the row observed last; -1 before the first
  Variable actor_generator_;
  Variable discounted_return_;  // float32 [agents]
  RunningMoments observation_moments_, return_moments_;
  Parameters state_;
};

}  // namespace imprint::nn

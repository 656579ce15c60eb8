#pragma once
// Proximal policy optimisation of many agents that share a policy: its state on the device, and the programs
// that act and learn.
//
//   step    the agents' observations go in with what their last actions brought, their next actions come out.
//   All is kept on the device. update  after `steps` steps: advantages, then epochs over shuffled
//   minibatches, as one sequence (program_sequence.h). greedy  the most likely actions, for agents that do
//   not learn.
//
// Memory holds two rollouts, and the actors play with a copy of the weights that an update replaces at its
// end. So an update may be spread over the frames of the next rollout, and a rollout is collected under one
// version. Who updates between two steps, and wants its first action to come from the new weights, observes
// and acts apart:
//
//   loop: step x (steps - 1); observe; update; act
//
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/nn/action_distribution.h"
#include "compute/nn/activation.h"
#include "compute/nn/optimiser.h"
#include "compute/nn/parameter.h"
#include "compute/nn/running_moments.h"
#include "compute/nn/sequential.h"
#include "compute/nn/world.h"
#include "compute/program/program_sequence.h"

namespace imprint::nn {

struct PpoOptions {
  std::string name = "ppo";
  std::int64_t agents = 1;
  std::int64_t observations = 1;  // numbers in one
  ActionSpace action;
  bool masked = false;                          // observations come with a mask of the open choices
  std::vector<std::int64_t> hidden = {64, 64};  // of the policy and of the value, which share nothing
  Activation activation = Activation::tanh;
  double log_deviation = 0;  // of continuous actions, at first

  std::int64_t steps = 128;      // of each agent in a rollout
  std::int64_t minibatch = 256;  // divides agents * steps
  std::int64_t epochs = 4;
  double discount = 0.99;
  double advantage_decay = 0.95;
  double value_coefficient = 0.5;
  double entropy_coefficient = 0.005;
  double max_gradient_norm = 0.5;
  double adam_epsilon = 1e-5;
  double max_divergence =
      0;  // an update makes no more steps once a minibatch diverges further from the old policy; 0: no limit
  bool clip_values = false;
  bool standardise_advantages = true;  // within each minibatch
  bool bootstrap_truncated =
      true;  // false: a truncated episode is worth nothing more, as in CleanRL's reference
  bool normalise_observations = false;
  bool normalise_rewards = false;  // by the deviation of the discounted return
  std::uint64_t seed = 1;
};

// What one step program does.
struct PpoStep {
  bool observe = true;  // takes in observations and what the last actions brought
  bool act = true;      // draws actions
  bool truncates =
      false;  // some episode was truncated: its last observation comes too, to be valued. Part of observing
};

// Shapes of the inputs of a step, in this order; all but the last two are there when it observes.
//   observation         float32 [agents, observations]: where the agents are now (after a reset, where an
//   episode ended) reward              float32 [agents]: of the action before; this and the next two are not
//   read at the very first step terminated          bool [agents]: the action before ended the episode
//   truncated           bool [agents]: the episode was stopped there, by a time limit
//   last_observation    float32 [agents, observations]: truncates; of the episode that ended, where
//   truncated; anything elsewhere mask                bool [agents, choices]: masked
// Outputs when it acts: int32 [agents, branches] if there are branches, float32 [agents, continuous] if there
// are continuous actions.
//
// Inputs of the update: learning_rate, clip_range: float32 scalars. Output: float32 [kPpoMetrics], means over
// the minibatches.
enum class PpoMetric : std::uint8_t {
  policy_loss,
  value_loss,
  entropy,
  divergence,
  clipped_share,
  gradient_norm,
  explained_variance
};
inline constexpr std::int64_t kPpoMetrics = 7;

class Ppo {
 public:
  // Errors: invalid_argument for sizes that make no sense.
  static Result<Ppo> create(const PpoOptions& options);

  Result<ProgramDescription> step(const PpoStep& what = {}) const;
  Result<ProgramSequence> update() const;
  // Inputs: observation [rows, observations], and mask [rows, choices] when masked. Outputs as of a step.
  Result<ProgramDescription> greedy(std::int64_t rows) const;

  // Where the world is on the device too, everything is one program: start once, then rollout and update,
  // again and again.
  //   sequence.parts = {rollout} + update().parts
  // Errors: invalid_argument when the worlds are not as many as the agents, or see or do other things;
  // unsupported when choices are masked.
  Result<ProgramDescription> start(const Worlds& worlds) const;
  Result<ProgramPart> rollout(const Worlds& worlds) const;
  // `turns` steps of the most likely actions, from a fresh start: give it Worlds of its own, since those in
  // which it learns would begin afresh too, and count the episodes. Output: float32 [1], the mean return of
  // each copy's first episode, or of as much of it as there was.
  Result<ProgramSequence> judge(const Worlds& worlds, std::uint32_t turns) const;

  const PpoOptions& options() const { return options_; }
  // What the learner's next step starts from, and what the actors play with.
  const Parameters& parameters() const { return learner_.parameters; }
  const Parameters& acting_parameters() const { return actor_.parameters; }
  // Everything else that a saved learner needs to go on as if nothing had happened: moments, normalisers,
  // counters, memory.
  const Parameters& state() const { return state_; }

 private:
  struct ActorCritic {
    Sequential policy{"policy"}, value{"value"};
    Variable log_deviation;
    Parameters parameters;

    Tensor value_of(const Tensor& observation) const { return squeeze(value(observation), 1); }
  };
  // Time-major: [2 steps, agents, ...].
  struct Memory {
    Variable observation, mask, discrete, continuous, log_probability, value;
    Variable reward, continues;  // of the action taken there; whether the episode went on
    Variable counts;  // 1 where the state it led to is worth something: everywhere but where the episode was
                      // terminated
    Variable ending;  // what was seen of that state, where an episode was truncated
  };
  // Of an update.
  struct Work {
    Variable first;      // int32 [1]: the rollout's first row in memory
    Variable order;      // int32 [epochs * steps * agents]: which sample each place of each minibatch takes
    Variable advantage;  // float32 [epochs * steps * agents]: in that order, standardised
    Variable value_target;  // float32 [steps * agents]
    Variable turn;          // int32 [1]: minibatch
    Variable sums;          // float32 [kPpoMetrics]
    Variable halted;        // float32 [1]: 1 once max_divergence was passed
  };

  explicit Ppo(const PpoOptions& options);
  ActorCritic network(const std::string& name) const;
  ActionDistribution distribution(const ActorCritic& by, const Tensor& observation, const Tensor& mask) const;
  std::vector<Tensor> flat(const Actions& actions) const;

  // What there is to see, and what the actions before brought; last_observation and mask may be empty, and
  // nothing was brought by a fresh start.
  struct Experience {
    Tensor observation, reward, terminated, truncated, last_observation, mask;
  };
  struct Seen {
    Tensor observation, mask, row;
  };  // row: int32 [1]
  Experience experience(ProgramDescription& program, bool truncates) const;
  Seen observe(const Experience& experience, std::vector<Update>& updates) const;
  void observe_outcome(const Experience& experience, std::vector<Update>& updates) const;
  Seen remembered() const;
  Actions act(const Seen& seen, std::vector<Update>& updates) const;
  Status check(const Worlds& worlds) const;

  ProgramDescription prepare() const;
  Result<ProgramDescription> minibatch_step() const;
  Result<ProgramDescription> publish() const;

  std::int64_t samples() const { return options_.agents * options_.steps; }
  std::int64_t minibatches() const { return options_.epochs * samples() / options_.minibatch; }

  PpoOptions options_;
  ActorCritic learner_, actor_;
  Adam adam_;
  Memory memory_;
  Work work_;
  Variable clock_;  // int32 [1]: the row last observed; -1 before the first
  Variable actor_generator_, learner_generator_;
  Variable discounted_return_;  // float32 [agents]
  RunningMoments observation_moments_, return_moments_;
  Parameters state_;
};

}  // namespace imprint::nn

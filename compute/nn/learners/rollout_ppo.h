#pragma once
// The update of proximal policy optimisation, for every source of rollouts: agents that all step at once and
// keep their rollout on the device (nn::Ppo), and agents of a game that act at times of their own, in many
// brains of one shape at once (the plugin). Programs that run one after the other:
//
//   prepare     moments, scaled rewards, generalised advantages, the order of the minibatches
//   minibatch   epochs * steps / minibatch times: clipped loss, clip of the gradient, Adam
//   publish     the acting networks' new weights
//
// Policy and critic share nothing, or, with PolicyAndCritic::together, all but their outputs. An update
// changes a learned copy of both. With normalise_observations the copy learns on normalised observations, and
// its first layers are folded back at the end: the acting networks take observations as they are, so that
// their weights alone are enough. Folding keeps what the networks compute. Only the very first update takes
// the initial weights as they are: they suit normalised observations.
//
// A brain without samples, or with a gradient that is not finite, keeps its weights.
// Schulman, Wolski, Dhariwal, Radford, Klimov, Proximal Policy Optimization Algorithms, 2017.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/learners/ppo_loss.h"
#include "compute/nn/learners/reward_signals.h"
#include "compute/nn/optimisers/grouped_moments.h"
#include "compute/nn/optimisers/optimiser.h"
#include "compute/nn/parameter.h"
#include "compute/program/program_sequence.h"

namespace imprint::nn {

// Means over the minibatches of an update.
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

// P = brains, R = steps, B = minibatch, D = observations.
struct RolloutPpoOptions {
  std::string name = "";     // of its variables: "name.advantage"; empty: "advantage"
  std::int64_t groups = 1;   // brains; 0: one, whose parameters have no axis of groups
  std::int64_t steps = 128;  // rows of a rollout and brain, all lanes
  std::int64_t lanes = 1;    // trajectories side by side: row = time * lanes + lane
  std::int64_t minibatch = 64, epochs = 4;
  std::int64_t sequence = 1;  // rows that stay together in their order: a divisor of steps and minibatch
  std::int64_t observations = 1;
  ActionSpace action = {};
  Tensor learning_rate = 3e-4f, clip_range = 0.2f;  // numbers, or scalar inputs
  // Updates after which the learning rate has fallen linearly to 0; 0: it stays. Needs groups.
  std::int64_t rate_updates = 0;
  double discount = 0.99, advantage_decay = 0.95;
  double entropy_coefficient = 0, value_coefficient = 0.5, max_gradient_norm = 0.5, adam_epsilon = 1e-5;
  double max_divergence = 0;           // a brain's update stops once a minibatch exceeds it; 0: no limit
  bool clip_values = false;            // values move by at most clip_range
  bool standardise_advantages = true;  // within each minibatch
  // The policy learns nothing but entropy from a rollout of equal rewards, none above 0, without a terminated
  // episode: its advantages are the critic's errors. Where each step earns something, going on is good, and
  // entropy alone would undo a policy that does. Not for processes that share a brain.
  bool wait_for_reward = false;
  // Rollouts hold steps of any older weights: V-trace corrects the advantages, and minibatches are clipped
  // around the acting policy. Needs the actions of RolloutSource::all. Not with process_count, signals or
  // memory. Hilton, Cobbe, Schulman, Batch size-invariance for policy optimization, 2022, has both policies
  // apart.
  bool corrects_lag = false;
  bool normalise_observations = false;  // needs groups and `filled`
  bool normalise_rewards = false;       // the same, and one lane; by the deviation of the discounted return
  std::uint64_t seed = 0;
  // Processes that learn the same brains side by side: each has its own rollout, and its rows of a minibatch
  // are `minibatch` of `process_count * minibatch`. Parts then name what is added up (ProgramPart::summed).
  // The caller sets ProgramSequence::all_reduce and gives all of them the same state. Not with networks that
  // have memory.
  std::int64_t process_count = 1, process_index = 0;
  // One process with `shards` blocks of rows draws each minibatch as that many process_count do, from each
  // block alike: a divisor of steps and minibatch.
  std::int64_t shards = 1;

  std::int64_t brains() const { return groups > 0 ? groups : 1; }
};

// observation [P, n, D], goal int32 [P, n] -> [P, n, outputs]. The first two parameters are the first layer's
// weight [P, D, width] and bias [P, 1, width].
struct RolloutNetwork {
  std::function<Tensor(const Tensor& observation, const Tensor& goal)> outputs;
  Parameters parameters;
  // For a policy that draws continuous numbers: [P, 1, continuous], or [continuous] without groups.
  Variable log_deviation = {};
};

// n rows of each brain.
struct RolloutRows {
  Tensor observation;      // float32 [P, n, D]
  Tensor goal;             // int32 [P, n], where the networks take one
  Tensor discrete;         // int32 [P * n, branches]; empty without branches
  Tensor continuous;       // float32 [P * n, continuous] as drawn; empty without them
  Tensor mask;             // bool [P * n, choices]: allowed; empty: all are
  Tensor log_probability;  // float32 [P, n] of the action, by the weights that chose it
  Tensor value;            // float32 [P, n] by the acting critic; empty: the update evaluates it
  Tensor state;            // float32 [P, n, S] of networks with memory, before the row
  Tensor restarts;         // float32 [P, n]: 1 = the row does not go on from the one before
  // Of whole rollouts:
  Tensor next_observation, next_goal;
  Tensor group, next_group;  // float32 [P, n, ...] of a critic that sees more: for PolicyAndCritic::together
  Tensor reward;             // float32 [P, n]
  Tensor follows;            // float32 [P, n]: 1 = the next row of its lane continues the trajectory
  Tensor continues;          // float32 [P, n]: 0 = the next observation has no value: the episode terminated
};

struct RolloutOutputs {
  Tensor policy;              // [P, n, outputs]
  Tensor value;               // [P, n]
  Tensor signal_values = {};  // [P, n, terms]: those of RolloutBeside::reward_signals
};
struct RolloutValues {
  Tensor own, next;                            // [P, n] of the observations, and of those that follow
  Tensor own_signals = {}, next_signals = {};  // [P, n, terms]
};

struct PolicyAndCritic {
  RolloutNetwork policy, critic;
  Parameters parameters;  // of both, with the deviation
  // Of networks that share layers or have memory, instead of `outputs`; the critic has no parameters of its
  // own in its RolloutNetwork. observation: as the network reads it, perhaps normalised.
  std::function<RolloutOutputs(const RolloutRows& rows, const Tensor& observation)> together = {};
  std::function<RolloutValues(const RolloutRows& rollout)> values = {};
};

struct RolloutSource {
  std::function<RolloutRows()> all;                     // a whole rollout
  std::function<RolloutRows(const Tensor& rows)> some;  // int32 [P * n], sorted by brain: row + brain * R
};

// Signals and demonstrations that an update learns from beside the game's rewards. Not with process_count.
struct RolloutBeside {
  // Each term has a value of its own: the critic's outputs after the first, in the order of the terms. An
  // episode's end does not end curiosity. Their advantages are added up by their strengths.
  std::shared_ptr<const RewardSignals> reward_signals = {};
  // ---- demonstrations ----
  Tensor has_demonstrations =
      {};  // bool [P] 1 = there are some: the brain learns from them, without a rollout too
  // By the learned policy, of actions that were shown: float32 [P, n]. actions: of P * n rows.
  using LogProbability =
      std::function<Tensor(const Tensor& observation, const Tensor& goal, const Actions& actions)>;
  // float32 [P]: added to the loss of each minibatch.
  std::function<Tensor(const LogProbability& log_probability, const Tensor& generator)> loss = {};
  std::function<Tensor(const Tensor& generator)> observations = {};              // some, [P, n, D]
  std::function<SignalRows(const Tensor& generator, std::int64_t n)> rows = {};  // some, for signals
  // Updates of a minibatch and their variables. learns: bool [P].
  std::function<std::vector<Update>(const Tensor& learns)> count = {};
  Parameters state = {};
};

class RolloutPpo {
 public:
  // acting: chooses actions and values them. learned: the copy that an update changes, with the weights of
  // `acting` at its start.
  RolloutPpo(RolloutPpoOptions options, PolicyAndCritic acting, PolicyAndCritic learned,
             RolloutBeside beside = {});

  // filled: int32 [P], 0 = this brain has no rollout; empty: all have.
  // Output of the last part: float32 [P, kPpoMetrics].
  Result<ProgramSequence> update(const RolloutSource& source, const Tensor& filled = Tensor()) const;
  std::uint32_t minibatches() const;

  // "adam....", "generator" and, where they are used, "moments....", "returns....", "fresh", "updates". For
  // saving, with the acting networks' parameters. An update changes it from its first part on.
  const Parameters& state() const { return state_; }
  // Holds nothing between updates.
  const Parameters& work() const { return work_; }

  // float32 [P]: 1 until the first update. Weights that come from elsewhere set it to 0, so that folding
  // keeps what they compute.
  static constexpr const char* kFresh = "fresh";

 private:
  using MomentValues = GroupedMoments::Values;
  GroupedMoments moments(const std::string& name, std::int64_t extent);
  // New rows, of all process_count. rows: float32 [P, n, extent]; column: where their moments are in
  // total_mean_ and total_variance_.
  GroupedMoments::Fresh fresh(const Tensor& rows, std::int64_t column) const;

  std::string named(const std::string& name) const;
  Variable work(const std::string& name, const Shape& shape, DType dtype = DType::float32);
  Tensor rate() const;       // of learning in this update
  Tensor deviation() const;  // [P, 1, D] of the observations, as the networks use it
  // of: the policy's outputs for the rows.
  ActionDistribution distribution(const RolloutNetwork& network, const RolloutRows& rows,
                                  const Tensor& of) const;
  RolloutOutputs evaluate(const PolicyAndCritic& networks, const RolloutRows& rows,
                          const Tensor& observation) const;
  RolloutValues values(const PolicyAndCritic& networks, const RolloutRows& rollout) const;

  // ---- beside the game's rewards (rollout_ppo_beside.cpp) ----
  bool has_signals() const { return beside_.reward_signals != nullptr; }
  void make_beside();
  Tensor learns(const Tensor& active) const;  // also from demonstrations alone
  SignalRows signal_rows(const RolloutRows& rows) const;
  // Adds the terms' advantages to the game's [P, R], and keeps their values' targets.
  Tensor with_signals(const Tensor& advantage, const RolloutRows& rollout, const RolloutValues& valued,
                      const Tensor& active, std::vector<Update>& updates) const;
  // Moments of the observations of a rollout, or of what was shown before the first one.
  MomentValues observed(const RolloutRows& rollout, const Tensor& active, std::vector<Update>& updates) const;
  // [P] each, to add to the loss of a minibatch.
  Tensor signal_loss(const RolloutOutputs& outputs, const Tensor& chosen) const;
  Tensor shown_loss() const;
  Result<> learn_beside(const RolloutRows& batch, const Tensor& active, std::vector<Update>& updates) const;
  Tensor normalised(const Tensor& observation) const;

  ProgramDescription prepare(const RolloutRows& rollout, const Tensor& active) const;
  // [P, R]: of the rollout's actions by the acting policy.
  Tensor acting_log_probability(const RolloutRows& rollout) const;
  Tensor drawn_order() const;  // int32 [P, epochs * R]
  struct Minibatch {
    std::vector<Tensor> gradients;  // of adam_'s parameters
    PpoLoss loss;
    std::vector<Update> beside = {};
  };
  Result<Minibatch> minibatch(const RolloutSource& source, const Tensor& active) const;
  Result<ProgramDescription> step(const Minibatch& from, const Tensor& has_rollout) const;
  ProgramDescription publish(const Tensor& active) const;
  Tensor by_time(const Tensor& rows) const;   // [P, R] -> [time, P * lanes]
  Tensor by_brain(const Tensor& time) const;  // and back
  Tensor scaled_rewards(const RolloutRows& rollout, const Tensor& active, std::vector<Update>& updates) const;
  // A deviation of advantages below this counts as this, where rewards are normalised.
  static constexpr double kLeastSpread = 0.1;
  Tensor standard(const Tensor& advantage) const;  // over the last axis
  // [P, 1] 1 = the rollout tells good actions from bad ones.
  static Tensor tells(const RolloutRows& rollout);
  Tensor in_rollouts(const Tensor& rows) const;  // [P, n] rows of each brain -> [P * n] of all
  void unfold(const RolloutNetwork& network, const MomentValues& moments, const Tensor& active,
              std::vector<Update>& updates) const;
  void fold(const RolloutNetwork& from, const RolloutNetwork& to, const Tensor& active,
            std::vector<Update>& updates) const;

  // ---- with process_count (rollout_ppo_shared.cpp) ----
  bool shares() const { return options_.process_count > 1; }
  void make_totals();
  Result<ProgramSequence> shared_update(const RolloutSource& source, const Tensor& active) const;
  ProgramDescription total_means(const RolloutRows& rollout) const;
  ProgramDescription total_variances(const RolloutRows& rollout) const;
  Tensor moment_rows(const RolloutRows& rollout) const;  // [P, R, what has running moments]
  ProgramDescription total_spreads() const;
  ProgramDescription total_standard() const;
  Result<ProgramDescription> total_gradient(const RolloutSource& source) const;
  Minibatch total_minibatch() const;

  RolloutPpoOptions options_;
  PolicyAndCritic acting_, learned_;
  Adam adam_;
  Variable generator_, fresh_;
  RolloutBeside beside_;
  Variable draws_;                        // a generator, beside the order's: one step per minibatch
  std::vector<Variable> signal_targets_;  // float32 [P * R] each
  GroupedMoments observation_moments_, return_moments_;
  Variable updates_;               // float32 [P]: so far, where the rate falls
  Variable value_target_, value_;  // float32 [P * R]
  Variable log_probability_;       // float32 [P * R] by the acting policy, where lag is corrected
  Variable order_;                 // int32 [P, epochs * R]: the row at each place of each minibatch
  Variable advantage_;             // float32 [P, epochs * R]: in that order, standardised
  Variable turn_;                  // int32 [1]: number of the minibatch
  Variable sums_;                  // float32 [P, kPpoMetrics]
  Variable halted_;                // float32 [P]: 1 once max_divergence was exceeded
  // Added up over the process_count, each of which contributes its share of the mean.
  Variable total_mean_, total_variance_;     // [P, 1, D + 1], without what is not normalised
  Variable total_advantage_, total_spread_;  // [P, minibatches, 1]
  std::vector<Variable> total_gradients_;    // of learned_.parameters
  Variable total_metrics_;                   // float32 [P, metrics of a minibatch]
  Parameters state_, work_;
};

}  // namespace imprint::nn

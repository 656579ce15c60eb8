#pragma once
// The network of a brain, or of all brains of a kennel at once: observations in, one row of outputs per goal
// out.

#include <optional>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/nn/learners/linear_bandit.h"
#include "compute/nn/modules/sequential.h"
#include "compute/program/program.h"
#include "compute/tensor/tensor.h"
#include "plugin/agent/spec/brain_spec.h"
#include "plugin/agent/spec/encoder.h"
#include "plugin/agent/spec/learner_traits.h"
#include "plugin/agent/spec/recurrent_cell.h"
#include "plugin/agent/spec/state_variable.h"

namespace imprint::agent {

// P = brain_count, G = goal_count, V = outputs of one goal (BrainSpec::head_count), N = any number of rows, D
// = numbers that it sees (ObservationSpec::width), S = BrainSpec::state_count.
//
// The trunk is the encoders, the hidden layers and the cell; its outputs are features [P, N, F]. The last
// layer makes heads of them.
class Network {
 public:
  // Weights [P, in, out] and biases [P, 1, out], uniform in +-1/sqrt(in) (LeCun, Bottou, Orr, Mueller,
  // Efficient BackProp, 1998; PyTorch's default for linear layers). Those of PPO and PQN are orthogonal with
  // gain sqrt(2), in the last layer head_gain, and its biases 0: the first policy is nearly uniform
  // (Andrychowicz et al., What Matters in On-Policy Reinforcement Learning?, 2021). Brain p draws from seed +
  // p, so a kennel starts as P single brains. A network of another name has the same first weights in its own
  // variables.
  static Result<Network> create(const BrainSpec& spec, const std::string& name = "network",
                                double head_gain = 0.01);

  // Without a cell: observations float32 [P, N, D], before scaling -> [P, N, G, V].
  Tensor heads(const Tensor& observations) const;
  // The same for observations that are scaled already.
  Tensor heads_of_scaled(const Tensor& observations) const;
  Tensor heads_of_features(const Tensor& features) const;
  Tensor scaled(const Tensor& observations) const;

  // observations, before scaling -> [P, N, F], the last hidden layer's outputs and 1, or without a hidden
  // layer the scaled observations and 1.
  Tensor features(const Tensor& observations) const;

  // heads [P, N, G, V], goals int32 [P, N] -> [P, N, V], the outputs of each row's goal.
  static Tensor of_goal(const Tensor& heads, const Tensor& goals);

  // With a cell, of scaled observations: one step of each row from states [P, N, S], or of sequences. Without
  // one states are not used.
  RecurrentCell::Output step(const Tensor& observations, const Tensor& states) const;
  RecurrentCell::Output run(const Tensor& observations, const SequenceRows& rows) const;
  std::int64_t feature_count() const;  // F

  const nn::Parameters& parameters() const { return parameters_; }
  // [P, 1, continuous actions] of a policy that draws them (the PPO learner), else not ok(): log of the
  // deviation.
  const Variable& log_deviation() const { return log_deviation_; }
  // [P] of a DQN brain that follows changes, else not ok(): share of random choices since the game changed.
  const Variable& change_epsilon() const { return change_epsilon_; }
  // [P, 1, G, V] of a feedback brain, else not ok(): words heard of each choice, by weight.
  const Variable& heard() const { return heard_; }
  // [P, 1, G, V] of a feedback brain, else not ok(): the usual word for each choice, whatever is seen.
  // [P, G]: how far heads are trusted beyond that under each goal, 0 to 1.
  const Variable& usual() const { return usual_; }
  const Variable& trust() const { return trust_; }
  // heads [P, N, G, V] -> those that a feedback brain acts by; others act by their heads.
  Tensor trusted(const Tensor& heads) const;
  // A bandit brain has a belief: its last layer is the mean, with one arm per goal and choice.
  bool has_belief() const { return covariance_.ok(); }
  nn::LinearBelief belief() const;
  void assign_belief(const nn::LinearBelief& belief, std::vector<Update>& updates) const;
  std::vector<StateVariable> state() const;  // "network.0.weight", ..., kLogDeviationName, kChangeEpsilonName

 private:
  Network(const BrainSpec& spec, const std::string& name)
      : spec_(spec), traits_(network_traits(spec)), trunk_(name) {}
  // Adds a linear layer to `into` and its parameters to the network's, both named by position.
  Result<> add_linear(nn::Sequential& into, std::size_t position, std::int64_t in, std::int64_t out,
                      double gain);
  Result<> make_belief(const std::string& name);

  Tensor trunk(const Tensor& observations) const;  // scaled ones, up to the cell

  BrainSpec spec_;
  NetworkTraits traits_;
  std::optional<Encoder> encoder_;
  nn::Sequential trunk_;  // hidden layers
  std::optional<RecurrentCell> cell_;
  nn::Sequential head_{"head"};
  nn::Parameters parameters_;
  Variable log_deviation_, change_epsilon_, heard_, usual_, trust_;
  Variable covariance_, squares_, count_;  // nn::LinearBelief
};

// Appends each parameter to a state as "prefix.name".
void add_state(std::vector<StateVariable>& state, const std::string& prefix,
               const nn::Parameters& parameters);

}  // namespace imprint::agent

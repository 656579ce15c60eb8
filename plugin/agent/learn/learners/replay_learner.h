#pragma once
// Base of the learners that keep a replay memory and draw minibatches from it. One learn step: draw, mean
// loss, gradients, per-brain clip to max_gradient_norm, Adam with beta 0.9 and 0.999 (Kingma, Ba, Adam,
// 2015), then add the new samples. A minibatch therefore never holds the samples that arrive with it. Steps
// are drawn by learn/learners/recall.h, so that a brain follows a game that changes.
//
// P = brain_count, B = batch_size, V = outputs of one goal.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compute/nn/parameter.h"
#include "compute/program/program.h"
#include "compute/tensor/tensor.h"

#include "plugin/agent/learn/learner.h"
#include "plugin/agent/learn/learners/signals.h"
#include "plugin/agent/learn/minibatch.h"

namespace imprint::agent {

// Results of one optimiser step. Brains that do not learn in it keep their values.
struct OptimiserStep {
  std::vector<Tensor> parameters;  // new values: the network's parameters, then the objective's
  Tensor count;                    // int32 [P] optimiser steps so far, this one included
  Tensor active;                   // bool [P] 1 = this brain learns in this step
};

class Objective {
 public:
  virtual ~Objective() = default;

  virtual Tensor losses(const Minibatch& batch, const Network& network) const = 0;  // float32 [P, B]
  // The same with figures of the minibatch, float32 [P] each.
  struct Scored {
    Tensor losses;
    std::vector<std::pair<Metric, Tensor>> metrics = {};
  };
  virtual Scored score(const Minibatch& batch, const Network& network) const {
    return {losses(batch, network)};
  }
  // float32 [P], added to the mean loss before its gradient; or not ok(). filled: int32 [P] samples
  // remembered.
  virtual Tensor penalty(const Network&, const Tensor& /*filled*/) const { return {}; }
  // float32 [P, n] of demonstrations (learn/learners/signals.h); or not ok(): it learns from none.
  virtual Tensor demonstration_losses(const Minibatch& /*shown*/, const Network&) const { return {}; }
  // Parameters that learn beside the network's. They are part of the state.
  virtual nn::Parameters parameters() const { return {}; }
  // State beside the networks and the optimiser, and its updates after an optimiser step.
  virtual std::vector<StateVariable> state() const { return {}; }
  // Updates from the samples that arrive. there: bool [P, K] 1 = this row is a sample; rows: [P, K, W].
  virtual void take_in(const Minibatch& /*arriving*/, const Tensor& /*there*/, const Network&,
                       std::vector<Update>&) const {}
  virtual std::vector<Update> updates(const OptimiserStep&) const { return {}; }
};

// Keeps the memory and draws the minibatch.
class MemoryLearner : public Learner {
 public:
  SampleUse sample_use() const override { return SampleUse::replay; }
  bool off_policy() const override { return true; }
  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override;

 protected:
  // The streams of the generator that learn() may use begin here.
  static constexpr std::uint32_t kFreeStream = 1;
  struct Draw {
    Minibatch batch;
    Tensor generator;
    Tensor changed;  // bool [P] 1 = the game has changed; not ok(): it does not look
    Tensor there;    // bool [P] 1 = the memory holds samples
    Tensor active;   // bool [P] 1 = learns from them, or from what was shown
    std::optional<DemonstrationDraws> demonstrations = {};
    Minibatch demonstration_batch = {};
  };
  // One step from a minibatch: adds state, updates and the output kLoss.
  virtual Result<> learn(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                         const Draw& draw, LearnGraph& graph) const = 0;
};

// Steps Adam down an objective's losses.
class ReplayLearner : public MemoryLearner {
 protected:
  Result<> learn(const BrainSpec& spec, const Network& network, const LearnInputs& intake, const Draw& draw,
                 LearnGraph& graph) const override;
  virtual Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const = 0;
};

}  // namespace imprint::agent

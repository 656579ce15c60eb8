#include "plugin/agent/learn/objective.h"

#include "compute/nn/losses.h"

namespace imprint::agent {
namespace {

class FeedbackObjective final : public Objective {
 public:
  explicit FeedbackObjective(const BrainSpec& spec) : spec_(spec) {}

  // The goal's outputs are a sum in which the others' are struck out: its derivative spreads each over the
  // goals, where that of a gather would have to look for them.
  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Tensor heads = network.heads(batch.columns(batch.layout.observation, spec_.observation.count));
    const Tensor goal = unsqueeze(one_hot(batch.whole_number(batch.layout.goal), spec_.goal_count), 3);
    const Tensor choice = one_hot(batch.whole_number(batch.layout.branches), spec_.action.branch_sizes[0]);
    const Tensor outputs = sum(heads * goal, {2});
    const Tensor error = square(sum(outputs * choice, {2}) - batch.column(batch.layout.target));
    const Tensor weight = batch.column(batch.layout.weight);
    if (spec_.margin_weight == 0) return weight * error;
    const Tensor rivals = sum((1.0f - choice) * square(relu(outputs + spec_.margin)), {2});
    return weight * (error + spec_.margin_weight * batch.column(batch.layout.margin) * rivals);
  }

 private:
  BrainSpec spec_;
};

class CloningObjective final : public Objective {
 public:
  explicit CloningObjective(const BrainSpec& spec) : spec_(spec) {}

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Tensor heads = network.heads(batch.columns(batch.layout.observation, spec_.observation.count));
    const Tensor outputs = Network::of_goal(heads, batch.whole_number(batch.layout.goal));
    Tensor loss = zeros({outputs.extent(0), outputs.extent(1)});
    for (std::size_t b = 0; b < spec_.action.branch_sizes.size(); ++b) {
      const Tensor logits = narrow(outputs, 2, spec_.action.branch_offset(b), spec_.action.branch_sizes[b]);
      const Tensor shown = batch.whole_number(batch.layout.branches + static_cast<std::uint32_t>(b));
      loss = loss + nn::cross_entropy(logits, shown, nn::Reduction::none);
    }
    if (spec_.action.continuous_count > 0) {
      const Tensor predicted = narrow(outputs, 2, spec_.action.choice_count(), spec_.action.continuous_count);
      loss =
          loss +
          sum(square(predicted - batch.columns(batch.layout.continuous, spec_.action.continuous_count)), {2});
    }
    return batch.column(batch.layout.weight) * loss;
  }

 private:
  BrainSpec spec_;
};

}  // namespace

std::unique_ptr<Objective> make_feedback_objective(const BrainSpec& spec) {
  return std::make_unique<FeedbackObjective>(spec);
}

std::unique_ptr<Objective> make_cloning_objective(const BrainSpec& spec) {
  return std::make_unique<CloningObjective>(spec);
}

Result<std::unique_ptr<Objective>> make_objective(const BrainSpec& spec) {
  switch (spec.learner) {
    case LearnerKind::feedback:
      return make_feedback_objective(spec);
    case LearnerKind::cloning:
      return make_cloning_objective(spec);
    case LearnerKind::dqn:
      return make_dqn_objective(spec);
    case LearnerKind::none:
    case LearnerKind::coach:
    case LearnerKind::ppo:
      break;
  }
  return make_error(ErrorCode::internal,
                    std::string("the learner ") + learner_name(spec.learner) + " draws from no memory");
}

}  // namespace imprint::agent

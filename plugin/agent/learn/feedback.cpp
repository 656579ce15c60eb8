#include "plugin/agent/learn/feedback.h"

#include "plugin/agent/learn/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

class FeedbackObjective final : public Objective {
 public:
  explicit FeedbackObjective(const BrainSpec& spec) : spec_(spec) {}

  // The goal's outputs are a masked sum rather than a gather: the derivative of a gather would have to search
  // for the rows of each goal.
  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Tensor heads = network.heads(batch.columns(batch.layout.observation, spec_.observation.width()));
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

class FeedbackLearner final : public ReplayLearner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return true; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_one_branch(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_number("brain_create", "margin", spec.margin, 0, 1e6f));
    return check_number("brain_create", "margin_weight", spec.margin_weight, 0, 1e6f);
  }
  SampleKind sample_kind() const override { return SampleKind::labelled; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::target)
        .add(&SampleLayout::weight)
        .add(&SampleLayout::margin);
  }
  void label(std::span<float> row, const SampleLayout& layout, float target, float weight,
             bool pushes_rivals) const override {
    row[layout.target] = target;
    row[layout.weight] = weight;
    row[layout.margin] = pushes_rivals && target > 0 ? 1.0f : 0.0f;
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    return std::unique_ptr<Objective>(std::make_unique<FeedbackObjective>(spec));
  }
};

}  // namespace

const Learner& feedback_learner() {
  static const FeedbackLearner learner;
  return learner;
}

}  // namespace imprint::agent

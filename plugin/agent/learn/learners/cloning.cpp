#include "plugin/agent/learn/learners/cloning.h"

#include "plugin/agent/learn/learners/replay_learner.h"

namespace imprint::agent {
namespace {

class CloningObjective final : public Objective {
 public:
  explicit CloningObjective(const BrainSpec& spec) : spec_(spec) {}

  Tensor losses(const Minibatch& batch, const Network& network) const override {
    const Tensor heads = network.heads(batch.columns(batch.layout.observation, spec_.observation.width()));
    const Tensor outputs = Network::of_goal(heads, batch.whole_number(batch.layout.goal));
    Tensor loss = zeros({outputs.extent(0), outputs.extent(1)});
    for (std::size_t b = 0; b < spec_.action.branch_sizes.size(); ++b) {
      const Tensor logits = narrow(outputs, 2, spec_.action.branch_offset(b), spec_.action.branch_sizes[b]);
      const Tensor shown = batch.whole_number(batch.layout.branches + static_cast<std::uint32_t>(b));
      // Cross-entropy. A choice outside the branch has loss 0, not NaN: nothing that a game shows may stop
      // it.
      const Tensor is_shown = one_hot(shown, spec_.action.branch_sizes[b]) > 0.0f;
      loss = loss + -sum(where(is_shown, log_softmax(logits), 0.0f), {-1});
    }
    if (spec_.action.continuous_count > 0) {
      const Tensor predicted = narrow(outputs, 2, spec_.action.choice_count(), spec_.action.continuous_count);
      const Tensor shown = batch.columns(batch.layout.continuous, spec_.action.continuous_count);
      loss = loss + sum(square(predicted - shown), {2});
    }
    return batch.column(batch.layout.weight) * loss;
  }

 private:
  BrainSpec spec_;
};

class CloningLearner final : public ReplayLearner {
 public:
  bool takes_feedback() const override { return false; }
  bool takes_demonstrations() const override { return true; }
  Result<> check_actions(const BrainSpec&) const override { return {}; }
  Result<> check_settings(const BrainSpec&) const override { return {}; }
  SampleKind sample_kind() const override { return SampleKind::labelled; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec).add(&SampleLayout::weight);
  }

 protected:
  Result<std::unique_ptr<Objective>> objective(const BrainSpec& spec) const override {
    return std::unique_ptr<Objective>(std::make_unique<CloningObjective>(spec));
  }
};

}  // namespace

const Learner& cloning_learner() {
  static const CloningLearner learner;
  return learner;
}

}  // namespace imprint::agent

#include "plugin/agent/learn/learners/bandit.h"

#include <algorithm>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/linear_bandit.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/optimisers/optimiser.h"
#include "plugin/agent/learn/learners/replay_learner.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

// The hidden layers' parameters.
nn::Parameters trunk_parameters(const Network& network) {
  nn::Parameters trunk;
  const nn::Parameters& all = network.parameters();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) trunk.add(all[i].name, all[i].variable);
  return trunk;
}

// The number of the arm: goals one after the other, each with its choices.
Tensor arm_of(const BrainSpec& spec, const Minibatch& batch) {
  const int choices = static_cast<int>(spec.action.branch_sizes[0]);
  return batch.whole_number(batch.layout.goal) * choices + batch.whole_number(batch.layout.branches);
}

class BanditLearner final : public MemoryLearner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_one_branch(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    return check_number("brain_create", "drift", spec.drift, 0, 1);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  bool learns_one_by_one() const override { return true; }
  // Its mean begins at 0: nothing is known.
  NetworkTraits network_traits(const BrainSpec&) const override {
    return {.orthogonal = true, .zero_head = true, .belief = true};
  }
  std::vector<SchemaSetting> schema(const BrainSpec& spec) const override { return {follows_changes(spec)}; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec).add(&SampleLayout::reward);
  }
  void explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t>,
               std::span<float> noise) const override {
    if (spec.thompson)
      fill_noise(noise, spec.exploration, draw);
    else
      std::ranges::fill(noise, spec.exploration);
  }

 protected:
  Result<> learn(const BrainSpec& spec, const Network& network, const LearnInputs& intake, const Draw& draw,
                 LearnGraph& graph) const override {
    IMPRINT_CHECK(take_in(spec, network, intake, draw, graph));
    return learn_features(spec, network, intake, draw, graph);
  }

 private:
  // The samples that arrive, in the last layer's belief.
  Result<> take_in(const BrainSpec& spec, const Network& network, const LearnInputs& intake, const Draw& draw,
                   LearnGraph& graph) const {
    const std::int64_t brains = spec.brain_count, arriving = intake.rows.extent(0) / brains;
    const SampleLayout& layout = draw.batch.layout;
    const Minibatch rows{reshape(intake.samples, {brains, arriving, layout.width}), layout};
    const Tensor features = network.features(rows.columns(layout.observation, spec.observation.width()));
    const Tensor reward = rows.column(layout.reward);
    const Tensor there = logical_and(reshape(greater_equal(intake.rows, 0), {brains, arriving}),
                                     logical_and(is_finite(reward), all(is_finite(features), {2})));
    nn::LinearBelief before = network.belief();
    if (draw.changed.ok()) {
      const Tensor first = nn::first_covariance(brains, features.extent(2), before.mean.extent(2));
      const Tensor changed = reshape(draw.changed, {brains, 1, 1});
      before.covariance = where(changed, first, before.covariance);
      before.mean = where(changed, zeros_like(before.mean), before.mean);
    }
    const nn::LinearSamples samples{where(unsqueeze(there, 2), features, zeros_like(features)),
                                    arm_of(spec, rows), where(there, reward, zeros_like(reward)), there};
    IMPRINT_ASSIGN(const nn::LinearBelief after, nn::learned(before, samples, double{spec.drift}));
    network.assign_belief(after, graph.description.updates);
    return {};
  }

  Result<> learn_features(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                          const Draw& draw, LearnGraph& graph) const {
    const SampleLayout& layout = draw.batch.layout;
    const Tensor values =
        Network::of_goal(network.heads(draw.batch.columns(layout.observation, spec.observation.width())),
                         draw.batch.whole_number(layout.goal));
    const Tensor chosen = one_hot(draw.batch.whole_number(layout.branches), spec.action.branch_sizes[0]);
    const Tensor losses = mean(square(sum(values * chosen, {2}) - draw.batch.column(layout.reward)), {1});
    ProgramDescription& program = graph.description;
    program.outputs = {losses};
    const nn::Parameters trunk = trunk_parameters(network);
    if (trunk.size() == 0) return {};
    const nn::Adam adam(trunk, {.groups = spec.brain_count});
    add_state(graph.state, "adam", adam.state());
    IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(losses), trunk.values()));
    IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                   nn::clip_by_global_norm(raw, max_gradient_norm(spec), spec.brain_count));
    const Tensor active =
        logical_and(greater(intake.filled, 0), logical_and(is_finite(losses), is_finite(clipped.norm)));
    IMPRINT_ASSIGN(const std::vector<Update> steps,
                   adam.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
    program.updates.insert(program.updates.end(), steps.begin(), steps.end());
    return {};
  }
};

}  // namespace

const Learner& bandit_learner() {
  static const BanditLearner learner;
  return learner;
}

}  // namespace imprint::agent

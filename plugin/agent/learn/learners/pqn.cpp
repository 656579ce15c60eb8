#include "plugin/agent/learn/learners/pqn.h"

#include <algorithm>

#include "compute/nn/learners/rollout_pqn.h"
#include "plugin/agent/learn/learners/rollouts.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

nn::RolloutPqnOptions update_options(const BrainSpec& spec) {
  nn::RolloutPqnOptions options;
  options.groups = spec.brain_count;
  options.steps = spec.rollout_steps;
  options.minibatch = spec.batch_size;
  options.epochs = spec.epochs;
  options.learning_rate = double{spec.learning_rate};
  options.discount = double{spec.discount};
  options.trace_decay = double{spec.trace_decay};
  options.max_gradient_norm = max_gradient_norm(spec);
  options.rate_updates = rate_updates(spec);
  const auto minibatches = static_cast<double>(spec.rollout_steps / spec.batch_size * spec.epochs);
  options.half_life_updates = static_cast<double>(spec.rate_half_life) / minibatches;
  options.normalise_rewards = spec.normalise_rewards;
  options.seed = spec.seed;
  return options;
}

class PqnLearner final : public Learner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_one_branch(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_rollout_settings(spec));
    IMPRINT_CHECK(check_number("brain_create", "trace_decay", spec.trace_decay, 0, 1));
    IMPRINT_CHECK(check_range("brain_create", "rate_half_life", spec.rate_half_life, 0, kMaxSize));
    return check_number("brain_create", "epsilon", spec.epsilon, 0, 1);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  SampleUse sample_use() const override { return SampleUse::rollout; }
  bool off_policy() const override { return false; }
  bool predicts_returns() const override { return true; }
  bool rates_next() const override { return true; }
  bool learns_from_others() const override { return false; }
  void complete(BrainSpec& spec) const override {
    constexpr std::uint32_t kRandomRollouts = 8;
    complete_rollouts(spec);
    if (spec.epsilon_decisions == 0)
      spec.epsilon_decisions = kRandomRollouts * std::min(spec.rollout_steps, kMaxSize);
  }
  NetworkTraits network_traits(const BrainSpec&) const override {
    return {.orthogonal = true, .normalised_layers = true};
  }
  std::vector<SchemaSetting> schema(const BrainSpec& spec) const override {
    return {{"normalise_rewards", spec.normalise_rewards, true,
             spec.normalise_rewards ? "normalised rewards" : nullptr}};
  }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::begins)
        .add(&SampleLayout::allowed, spec.action.choice_count())
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.width())
        .add(&SampleLayout::next_goal);
  }
  void explore(const BrainSpec& spec, const DecisionDraw& draw, std::span<const std::int32_t> allowed,
               std::span<float> noise) const override {
    std::ranges::fill(noise, 0.0f);
    add_random_choice(noise, allowed, spec.random_share(draw.of_brain), draw);
  }
  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override {
    IMPRINT_ASSIGN(const Network learned, Network::create(spec, "learned"));
    const nn::RolloutPqn pqn(update_options(spec), rollout_network(network), rollout_network(learned));
    IMPRINT_ASSIGN(graph.sequence,
                   pqn.update(rollout_source(spec, layout(spec), network, intake.samples), intake.filled));
    std::vector<Tensor>& outputs = graph.sequence.parts.back().description.outputs;
    const Tensor metrics = outputs[0];
    const auto metric = [&](nn::PqnMetric of) {
      return squeeze(narrow(metrics, 1, static_cast<std::int64_t>(of), 1), 1);
    };
    const Tensor norm = metric(nn::PqnMetric::gradient_norm);
    outputs = {where(is_finite(norm), metric(nn::PqnMetric::loss), norm),
               narrow(metrics, 1, 1, nn::kPqnMetrics - 1)};
    graph.metrics = {Metric::error, Metric::lowest_value, Metric::highest_value, Metric::gradient_norm};
    graph.minibatches = pqn.minibatches();
    return finish_update(pqn.state(), pqn.work(), learned.parameters(), network.parameters(), graph);
  }
};

}  // namespace

const Learner& pqn_learner() {
  static const PqnLearner learner;
  return learner;
}

}  // namespace imprint::agent

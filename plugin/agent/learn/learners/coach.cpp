#include "plugin/agent/learn/learners/coach.h"

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/action_distribution.h"
#include "compute/nn/optimisers/optimiser.h"
#include "plugin/agent/learn/samples/samples.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

// float32 [P, K]: log pi of each sample.
Tensor log_probabilities(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                         const Tensor& samples) {
  const std::int64_t brains = spec.brain_count, rows = samples.extent(0);
  const auto columns = [&](std::uint32_t first, std::size_t count) {
    return narrow(samples, 1, first, static_cast<std::int64_t>(count));
  };
  const Shape by_brain{brains, rows / brains};
  const Tensor observation = reshape(columns(layout.observation, spec.observation.width()),
                                     {brains, rows / brains, spec.observation.width()});
  const Tensor goal = reshape(cast(columns(layout.goal, 1), DType::int32), by_brain);
  const Tensor outputs =
      reshape(Network::of_goal(network.heads(observation), goal), {rows, spec.action.output_count()});
  nn::ActionSpace space;
  for (const std::uint32_t size : spec.action.branch_sizes) space.branches.push_back(size);
  const nn::ActionDistribution policy(space, outputs, {},
                                      greater(columns(layout.allowed, spec.action.choice_count()), 0.5f));
  const Tensor done = cast(columns(layout.branches, spec.action.branch_sizes.size()), DType::int32);
  return reshape(policy.log_probability({done, {}}), by_brain);
}

// [P] as it multiplies a parameter [P, in, out].
Tensor beside(const Tensor& per_brain) { return unsqueeze(unsqueeze(per_brain, 1), 2); }

// How much each step counts. Rows beyond `filled` count for nothing: they follow all others.
struct TraceWeights {
  Tensor there;                      // bool [P, K] 1 = this row is a step
  Tensor feedback;                   // float32 [P, K]
  Tensor in_trace, in_step;          // float32 [P, K] of each step's gradient
  Tensor old_in_trace, old_in_step;  // float32 [P] of the trace so far
};

// Both the trace at the end and the sum of f * e are weighted sums of the steps' gradients and the trace so
// far. A step's weight follows from the steps after it.
TraceWeights trace_weights(const BrainSpec& spec, const SampleLayout& layout, const Tensor& filled,
                           const Tensor& samples) {
  const std::int64_t brains = spec.brain_count, rows = rows_per_step(spec);
  TraceWeights weights;
  const Shape by_brain{brains, rows};
  const Tensor index = iota(by_brain, 1), there = less(index, unsqueeze(filled, 1));
  const auto column = [&](std::uint32_t first) {
    return where(there, reshape(narrow(samples, 1, first, 1), by_brain), zeros(by_brain));
  };
  weights.there = there;
  weights.feedback = column(layout.reward);
  const Tensor kept = spec.trace_decay * (1.0f - column(layout.begins));  // of the trace before each step
  const Tensor after = concat({narrow(kept, 1, 1, rows - 1), zeros({brains, 1})}, 1);

  const Tensor is_last = cast(equal(index, unsqueeze(filled, 1) - 1), DType::float32);
  weights.in_trace = linear_recurrence(is_last, after, 1, true);
  weights.in_step = linear_recurrence(weights.feedback, after, 1, true);
  const Tensor first_kept = squeeze(narrow(kept, 1, 0, 1), 1);
  weights.old_in_trace = first_kept * squeeze(narrow(weights.in_trace, 1, 0, 1), 1);
  weights.old_in_step = first_kept * squeeze(narrow(weights.in_step, 1, 0, 1), 1);
  return weights;
}

Result<> describe_traces(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                         const LearnInputs& intake, LearnGraph& graph) {
  const TraceWeights weights = trace_weights(spec, layout, intake.filled, intake.samples);
  const Shape by_brain{spec.brain_count, rows_per_step(spec)};
  const Tensor log_probability =
      where(weights.there, log_probabilities(spec, layout, network, intake.samples), zeros(by_brain));
  const Tensor losses = neg(sum(weights.feedback * log_probability, {1}));
  const std::vector<Tensor> parameters = network.parameters().values();
  IMPRINT_ASSIGN(const std::vector<Tensor> to_trace,
                 gradients(sum(weights.in_trace * log_probability), parameters));
  IMPRINT_ASSIGN(const std::vector<Tensor> to_step,
                 gradients(sum(weights.in_step * log_probability), parameters));

  std::vector<Variable> traces;
  std::vector<Tensor> descent, trace_values;
  Tensor finite = is_finite(losses);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    traces.push_back(Variable::zeros("trace." + network.parameters()[i].name, parameters[i].shape()));
    graph.state.push_back({traces[i].name(), traces[i]});
    trace_values.push_back(beside(weights.old_in_trace) * traces[i].value() + to_trace[i]);
    descent.push_back(neg(beside(weights.old_in_step) * traces[i].value() + to_step[i]));
    finite = logical_and(finite, all(is_finite(trace_values[i]), {1, 2}));
  }
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                 nn::clip_by_global_norm(descent, max_gradient_norm(spec), spec.brain_count));
  const Tensor active = logical_and(greater(intake.filled, 0), logical_and(finite, is_finite(clipped.norm)));
  const nn::Sgd sgd(network.parameters(), {.groups = spec.brain_count});
  ProgramDescription& program = graph.description;
  IMPRINT_ASSIGN(program.updates,
                 sgd.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  for (std::size_t i = 0; i < traces.size(); ++i)
    program.updates.push_back(
        Update::assign(traces[i], where(beside(active), trace_values[i], traces[i].value())));
  program.outputs = {losses};
  return {};
}

class CoachLearner final : public Learner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_branches_only(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    return check_number("brain_create", "trace_decay", spec.trace_decay, 0, 0.9999f);
  }
  SampleKind sample_kind() const override { return SampleKind::step; }
  SampleUse sample_use() const override { return SampleUse::once; }
  bool off_policy() const override { return false; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::begins)
        .add(&SampleLayout::allowed, spec.action.choice_count());
  }
  // A draw from the softmax of the outputs.
  void explore(const BrainSpec&, const DecisionDraw& draw, std::span<const std::int32_t>,
               std::span<float> noise) const override {
    fill_gumbel(noise, draw);
  }
  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override {
    return describe_traces(spec, layout(spec), network, intake, graph);
  }
};

}  // namespace

const Learner& coach_learner() {
  static const CoachLearner learner;
  return learner;
}

}  // namespace imprint::agent

#include "plugin/agent/learn/trace_graph.h"

#include "compute/graph/autodiff.h"
#include "compute/nn/action_distribution.h"
#include "compute/nn/optimiser.h"

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
  const Tensor observation = reshape(columns(layout.observation, spec.observation.count),
                                     {brains, rows / brains, spec.observation.count});
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

// [P] beside a parameter [P, in, out].
Tensor beside(const Tensor& per_brain) { return unsqueeze(unsqueeze(per_brain, 1), 2); }

}  // namespace

Status describe_tracing(const BrainSpec& spec, const Network& network, const Tensor& filled,
                        const Tensor& samples, double max_norm, LearnGraph& graph) {
  const std::int64_t brains = spec.brain_count, rows = rows_per_step(spec);
  const SampleLayout layout = SampleLayout::of(spec);
  const Shape by_brain{brains, rows};
  const Tensor index = iota(by_brain, 1), there = less(index, unsqueeze(filled, 1));
  const auto column = [&](std::uint32_t first) {
    return where(there, reshape(narrow(samples, 1, first, 1), by_brain), zeros(by_brain));
  };
  const Tensor feedback = column(layout.reward);
  // How much of the trace before a step is left in it. Rows that are not there come behind the others, and
  // have no part in anything.
  const Tensor kept = spec.trace_decay * (1.0f - column(layout.begins));
  const Tensor after = concat({narrow(kept, 1, 1, rows - 1), zeros({brains, 1})}, 1);

  // Both the trace at the end and the sum of f * e are weighted sums of the steps' gradients and the trace
  // before; a step's weight is what the steps behind it make of it.
  const Tensor is_last = cast(equal(index, unsqueeze(filled, 1) - 1), DType::float32);
  const Tensor in_trace = linear_recurrence(is_last, after, 1, true);
  const Tensor in_step = linear_recurrence(feedback, after, 1, true);
  const Tensor first_kept = squeeze(narrow(kept, 1, 0, 1), 1);
  const Tensor old_in_trace = first_kept * squeeze(narrow(in_trace, 1, 0, 1), 1);
  const Tensor old_in_step = first_kept * squeeze(narrow(in_step, 1, 0, 1), 1);

  const Tensor log_probability =
      where(there, log_probabilities(spec, layout, network, samples), zeros(by_brain));
  const Tensor losses = neg(sum(feedback * log_probability, {1}));
  const std::vector<Tensor> parameters = network.parameters().values();
  IMPRINT_ASSIGN(const std::vector<Tensor> to_trace, gradients(sum(in_trace * log_probability), parameters));
  IMPRINT_ASSIGN(const std::vector<Tensor> to_step, gradients(sum(in_step * log_probability), parameters));

  std::vector<Variable> traces;
  std::vector<Tensor> descent, trace_values;
  Tensor finite = is_finite(losses);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    traces.push_back(Variable::zeros("trace." + network.parameters()[i].name, parameters[i].shape()));
    graph.state.push_back({traces[i].name(), traces[i]});
    trace_values.push_back(beside(old_in_trace) * traces[i].value() + to_trace[i]);
    descent.push_back(neg(beside(old_in_step) * traces[i].value() + to_step[i]));
    finite = logical_and(finite, all(is_finite(trace_values[i]), {1, 2}));
  }
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped, nn::clip_by_global_norm(descent, max_norm, brains));
  const Tensor active = logical_and(greater(filled, 0), logical_and(finite, is_finite(clipped.norm)));
  const nn::Sgd sgd(network.parameters(), {.groups = brains});
  ProgramDescription& program = graph.description;
  IMPRINT_ASSIGN(program.updates,
                 sgd.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  for (std::size_t i = 0; i < traces.size(); ++i)
    program.updates.push_back(
        Update::assign(traces[i], where(beside(active), trace_values[i], traces[i].value())));
  program.outputs = {losses};
  return {};
}

}  // namespace imprint::agent

#include "plugin/agent/decide/infer_graph.h"

#include "compute/nn/sac.h"
#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/decide/shared_tensor.h"

namespace imprint::agent {
namespace {

// Below every value that a network can hold, yet far from infinity.
constexpr double kForbidden = -1e30;

// The whim's choice where its number is below the unrest. wanted: [P, A, choices].
Tensor with_whims(const Tensor& wanted, const Tensor& whim, const Variable& unrest) {
  const Tensor due = less(narrow(whim, 2, 1, 1), reshape(unrest.value(), {wanted.extent(0), 1, 1}));
  const Tensor choice = cast(squeeze(narrow(whim, 2, 0, 1), 2), DType::int32);
  return where(due, one_hot(choice, wanted.extent(2)), wanted);
}

}  // namespace

Tensor read_observations(const Tensor& given, std::span<const Variable> observations, const Tensor& offset) {
  const Tensor first = unsqueeze(offset, 2);
  const Tensor seen = take_from(observations, maximum(first, 0) + iota(given.shape(), 2));
  return where(greater_equal(first, 0), where(is_finite(seen), seen, 0.0), given);
}

std::uint32_t action_width(const BrainSpec& spec) {
  return static_cast<std::uint32_t>(spec.action.branch_sizes.size()) + spec.action.continuous_count +
         spec.action.output_count();
}

InferGraph describe_inference(const BrainSpec& spec, const Network& network, const SharedVariables& shared) {
  InferGraph graph;
  // Agents may observe through the shared buffer in any frame, without deciding.
  graph.agents = !shared.observations.empty() ? spec.agents_per_brain : spec.agents_per_turn();
  const std::int64_t brains = spec.brain_count, agents = graph.agents, choices = spec.action.choice_count();
  ProgramDescription& program = graph.description;
  program.name = spec.name + " infer";
  program.slot_count = inference_slots(spec.action_latency_frames);
  const auto feed = [&](int& index, Tensor tensor) {
    index = static_cast<int>(program.inputs.size());
    program.inputs.push_back(tensor);
    return tensor;
  };
  const auto give = [&](Tensor tensor) {
    program.outputs.push_back(std::move(tensor));
    return static_cast<int>(program.outputs.size()) - 1;
  };

  Tensor observation =
      feed(graph.observation, input("observation", {brains, agents, spec.observation.count}));
  if (!shared.observations.empty()) {
    observation = read_observations(observation, shared.observations,
                                    feed(graph.offset, input("offset", {brains, agents}, DType::int32)));
    if (shared.observation_copies.ok()) {
      const Tensor rows = feed(graph.copy_rows, input("copy rows", {brains * agents}, DType::int32));
      program.updates.push_back(Update::scatter_rows(
          shared.observation_copies, rows, reshape(observation, {brains * agents, spec.observation.count})));
    }
  }
  const std::int64_t outputs = spec.head_count();
  Tensor values = reshape(network.heads(observation), {brains, agents, spec.goal_count * outputs});
  if (spec.goal_count > 1) {
    const Tensor goal = feed(graph.goal, input("goal", {brains, agents}, DType::int32));
    values = gather(values, 2,
                    unsqueeze(goal * static_cast<int>(outputs), 2) + iota({brains, agents, outputs}, 2));
  }
  Tensor log_deviations;
  if (outputs > spec.action.output_count()) {
    log_deviations = narrow(values, 2, spec.action.output_count(), spec.action.continuous_count);
    values = narrow(values, 2, 0, spec.action.output_count());
  }
  graph.values = give(values);
  if (choices > 0) {
    const Tensor mask = feed(graph.mask, input("mask", {brains, agents, choices}, DType::int32));
    const Tensor noise = feed(graph.noise, input("noise", {brains, agents, choices}));
    Tensor wanted = narrow(values, 2, 0, choices) + noise;
    if (network.unrest().ok())
      wanted = with_whims(wanted, feed(graph.whim, input("whim", {brains, agents, 2})), network.unrest());
    const Tensor rated = where(greater(mask, 0), wanted, kForbidden);
    for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b)
      graph.branches.push_back(
          give(argmax(narrow(rated, 2, spec.action.branch_offset(b), spec.action.branch_sizes[b]), 2)));
  }
  if (const std::int64_t numbers = spec.action.continuous_count; numbers > 0) {
    Tensor drawn = narrow(values, 2, choices, numbers);
    if (spec.learner == LearnerKind::sac)
      drawn = nn::squashed(concat({drawn, log_deviations}, 2),
                           feed(graph.drift, input("drift", {brains, agents, numbers})))
                  .action;
    else if (const Variable& log_deviation = network.log_deviation(); log_deviation.ok()) {
      drawn =
          drawn + exp(log_deviation.value()) * feed(graph.drift, input("drift", {brains, agents, numbers}));
      graph.log_deviation = give(log_deviation.value() * 1.0f);
    }
    graph.continuous = give(clamp(drawn, -1, 1));
  }
  if (!shared.actions.empty()) {
    std::vector<Tensor> row;
    for (const int branch : graph.branches)
      row.push_back(unsqueeze(cast(program.outputs[static_cast<std::size_t>(branch)], DType::float32), 2));
    if (graph.continuous >= 0) row.push_back(program.outputs[static_cast<std::size_t>(graph.continuous)]);
    row.push_back(values);
    const Tensor rows = feed(graph.action_rows, input("action rows", {brains * agents}, DType::int32));
    const std::vector<Update> written =
        scatter_to(shared.actions, rows, reshape(concat(row, 2), {brains * agents, action_width(spec)}));
    program.updates.insert(program.updates.end(), written.begin(), written.end());
  }
  return graph;
}

}  // namespace imprint::agent

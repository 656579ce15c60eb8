#include "plugin/agent/decide/infer_graph.h"

#include "compute/nn/learners/sac.h"
#include "plugin/agent/decide/observation_copy.h"
#include "plugin/agent/decide/shared_tensor.h"
#include "plugin/agent/spec/learner_traits.h"

namespace imprint::agent {
namespace {

// Below every value that a network can hold, yet far from infinity.
constexpr double kForbidden = -1e30;

// all: [P, A, goals * outputs] -> those of each agent's goal. goal: int32 [P, A], or not ok() with one goal.
Tensor of_agents_goal(const Tensor& goal, const Tensor& all, std::int64_t outputs) {
  if (!goal.ok()) return all;
  const Shape shape{all.extent(0), all.extent(1), outputs};
  return gather(all, 2, unsqueeze(goal * static_cast<int>(outputs), 2) + iota(shape, 2));
}

// [P, A, goals * choices], times the noise: a choice that few feedbacks were about is tried sooner. Under a
// goal that only rewards teach the noise stays, since a game may change.
Tensor doubt(const BrainSpec& spec, const Network& network, std::int64_t agents) {
  constexpr float kMost = 1, kFeedbacks = 8;
  const std::int64_t brains = spec.brain_count,
                     all = std::int64_t{spec.goal_count} * spec.action.choice_count();
  const Tensor words = network.heard().value();
  const Tensor of_goal =
      where(greater(sum(words, {3}, true), 0.0f), kMost / sqrt(words / kFeedbacks + 1.0f), 1.0f);
  return reshape(of_goal, {brains, 1, all}) + zeros({brains, agents, 1});
}

// The random choice where its number is below the change_epsilon. wanted: [P, A, choices].
Tensor with_random_choices(const Tensor& wanted, const Tensor& random_choice,
                           const Variable& change_epsilon) {
  const Tensor due =
      less(narrow(random_choice, 2, 1, 1), reshape(change_epsilon.value(), {wanted.extent(0), 1, 1}));
  const Tensor choice = cast(squeeze(narrow(random_choice, 2, 0, 1), 2), DType::int32);
  return where(due, one_hot(choice, wanted.extent(2)), wanted);
}

Tensor feed_input(ProgramDescription& program, int& index, const std::string& name, Shape shape,
                  DType dtype = DType::int32) {
  index = static_cast<int>(program.inputs.size());
  program.inputs.push_back(input(name, std::move(shape), dtype));
  return program.inputs.back();
}

// All that the network sees [P, A, D], which is also copied where samples name it.
Tensor see(const BrainSpec& spec, const SharedVariables& shared, InferGraph& graph) {
  ProgramDescription& program = graph.description;
  const std::int64_t brains = spec.brain_count, agents = graph.agents, width = spec.observation.width(),
                     count = spec.observation.count;
  const Tensor given =
      feed_input(program, graph.observation, "observation", {brains, agents, width}, DType::float32);
  if (shared.observations.empty()) return given;
  const Tensor offset = feed_input(program, graph.offset, "offset", {brains, agents});
  Tensor seen = read_observations(narrow(given, 2, width - count, count), shared.observations, offset);
  if (spec.observation.stack > 1) {
    const Tensor rows = feed_input(program, graph.stacked, "stacked on", {brains, agents});
    const Tensor before = where(greater_equal(unsqueeze(rows, 2), 0),
                                take(shared.observation_copies.value(), 0, maximum(rows, 0)), 0.0f);
    const Tensor earlier = where(greater_equal(unsqueeze(offset, 2), 0),
                                 narrow(before, 2, count, width - count), narrow(given, 2, 0, width - count));
    seen = concat({earlier, seen}, 2);
  }
  if (shared.observation_copies.ok()) {
    const Tensor rows = feed_input(program, graph.copy_rows, "copy rows", {brains * agents});
    program.updates.push_back(
        Update::scatter_rows(shared.observation_copies, rows, reshape(seen, {brains * agents, width})));
  }
  return seen;
}

// Heads [P, A, G, V] that agents act by. One that explores acts by all that it sees: words about that tell
// how far what is seen can be trusted.
Tensor acted_by(const Network& network, const Tensor& heads, const Tensor& noise) {
  if (!network.trust().ok()) return heads;
  const Tensor explores = greater(sum(abs(noise), {2}, true), 0.0f);
  return where(unsqueeze(explores, 3), heads, network.trusted(heads));
}

// The network's heads; the goal's are those that agents act by. A cell goes one step on for the agents that
// asked.
Tensor rated(const BrainSpec& spec, const Network& network, const Tensor& seen, const Tensor& noise,
             const Variable& states, InferGraph& graph) {
  if (!spec.has_cell()) {
    const Tensor features = network.step(network.scaled(seen), {}).features;
    return acted_by(network, network.heads_of_features(features), noise);
  }
  ProgramDescription& program = graph.description;
  const Shape flags{spec.brain_count, graph.agents};
  const Tensor active = unsqueeze(feed_input(program, graph.active, "active", flags), 2),
               reset = unsqueeze(feed_input(program, graph.reset, "reset", flags), 2);
  const Tensor before = where(greater(reset, 0), 0.0f, states.value());
  const RecurrentCell::Output after = network.step(network.scaled(seen), before);
  program.updates.push_back(Update::assign(states, where(greater(active, 0), after.states, states.value())));
  if (spec.learns()) {
    graph.state = static_cast<int>(program.outputs.size());
    program.outputs.push_back(before);
  }
  return network.heads_of_features(after.features);
}

// Rows that act by an entry of a pool of S networks. P = brains, A = agents.
class PoolRows {
 public:
  // opponent: int32 [P, A], an entry or below 0.
  PoolRows(const BrainSpec& spec, const Tensor& opponent)
      : brains_(spec.brain_count), entries_(spec.pool_size), opponent_(opponent) {}

  // [P, A, D] -> [P * S, A, D]: each network sees all rows.
  Tensor repeated(const Tensor& seen) const {
    const std::int64_t agents = seen.extent(1), width = seen.extent(2);
    return reshape(expand(unsqueeze(seen, 1), {brains_, entries_, agents, width}),
                   {brains_ * entries_, agents, width});
  }
  // own [P, A, G, V], pooled [P * S, A, G, V].
  Tensor chosen(const Tensor& own, const Tensor& pooled) const {
    const std::int64_t agents = own.extent(1), all = own.extent(2) * own.extent(3);
    const Tensor by_entry = reshape(pooled, {brains_, entries_, agents, all});
    const Tensor which = unsqueeze(transpose(one_hot(maximum(opponent_, 0), entries_), 1, 2), 3);
    const Tensor found = reshape(sum(by_entry * which, {1}), own.shape());
    return where(greater_equal(unsqueeze(unsqueeze(opponent_, 2), 3), 0), found, own);
  }
  // own [P, 1, C], pooled [P * S, 1, C] -> [P, A, C].
  Tensor chosen_deviation(const Tensor& own, const Tensor& pooled) const {
    const std::int64_t numbers = own.extent(2);
    const Tensor found =
        matmul(one_hot(maximum(opponent_, 0), entries_), reshape(pooled, {brains_, entries_, numbers}));
    return where(greater_equal(unsqueeze(opponent_, 2), 0), found, own);
  }

 private:
  std::int64_t brains_, entries_;
  Tensor opponent_;
};

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

InferGraph describe_inference(const BrainSpec& spec, const Network& network, const SharedVariables& shared,
                              const Network* pool) {
  InferGraph graph;
  // Agents may observe through the shared buffer in any frame, without deciding. Cells have their rows.
  graph.agents =
      !shared.observations.empty() || spec.has_cell() ? spec.agents_per_brain : spec.agents_per_turn();
  const std::int64_t brains = spec.brain_count, agents = graph.agents, choices = spec.action.choice_count();
  ProgramDescription& program = graph.description;
  program.name = spec.name + " infer";
  program.slot_count = inference_slots(spec.action_latency_frames);
  const auto feed = [&](int& index, const char* name, Shape shape, DType dtype = DType::int32) {
    return feed_input(program, index, name, std::move(shape), dtype);
  };
  const auto give = [&](Tensor tensor) {
    program.outputs.push_back(std::move(tensor));
    return static_cast<int>(program.outputs.size()) - 1;
  };

  const std::int64_t outputs = spec.head_count();
  const Tensor seen = see(spec, shared, graph);
  Tensor goal, noise;
  if (spec.goal_count > 1) goal = feed(graph.goal, "goal", {brains, agents});
  if (choices > 0) noise = feed(graph.noise, "noise", {brains, agents, choices}, DType::float32);
  Tensor heads = rated(spec, network, seen, noise, shared.states, graph);
  Tensor deviation;
  if (network.log_deviation().ok()) deviation = network.log_deviation().value() * 1.0f;
  if (pool) {
    const PoolRows rows(spec, feed(graph.opponent, "opponent", {brains, agents}));
    heads = rows.chosen(heads, pool->heads(rows.repeated(seen)));
    if (deviation.ok()) deviation = rows.chosen_deviation(deviation, pool->log_deviation().value());
  }
  Tensor values = of_agents_goal(goal, reshape(heads, {brains, agents, spec.goal_count * outputs}), outputs);
  Tensor log_deviations;
  if (outputs > spec.action.output_count()) {
    log_deviations = narrow(values, 2, spec.action.output_count(), spec.action.continuous_count);
    values = narrow(values, 2, 0, spec.action.output_count());
  }
  graph.values = give(values);
  if (choices > 0) {
    const Tensor mask = feed(graph.mask, "mask", {brains, agents, choices});
    if (network.has_belief())
      noise =
          noise * of_agents_goal(goal, nn::value_widths(network.belief(), network.features(seen)), outputs);
    if (network.heard().ok()) noise = noise * of_agents_goal(goal, doubt(spec, network, agents), outputs);
    Tensor wanted = narrow(values, 2, 0, choices) + noise;
    if (network.change_epsilon().ok())
      wanted = with_random_choices(
          wanted, feed(graph.random_choice, "random_choice", {brains, agents, 2}, DType::float32),
          network.change_epsilon());
    const Tensor rated = where(greater(mask, 0), wanted, kForbidden);
    for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b)
      graph.branches.push_back(
          give(argmax(narrow(rated, 2, spec.action.branch_offset(b), spec.action.branch_sizes[b]), 2)));
  }
  if (const std::int64_t numbers = spec.action.continuous_count; numbers > 0) {
    Tensor drawn = narrow(values, 2, choices, numbers);
    if (network_traits(spec).squashed_actions)
      drawn = nn::squashed(concat({drawn, log_deviations}, 2),
                           feed(graph.drift, "drift", {brains, agents, numbers}, DType::float32))
                  .action;
    else if (deviation.ok()) {
      drawn = drawn + exp(deviation) * feed(graph.drift, "drift", {brains, agents, numbers}, DType::float32);
      graph.log_deviation = give(network.log_deviation().value() * 1.0f);  // of those that learn
    }
    graph.continuous = give(clamp(drawn, -1, 1));
  }
  if (!shared.actions.empty()) {
    std::vector<Tensor> row;
    for (const int branch : graph.branches)
      row.push_back(unsqueeze(cast(program.outputs[static_cast<std::size_t>(branch)], DType::float32), 2));
    if (graph.continuous >= 0) row.push_back(program.outputs[static_cast<std::size_t>(graph.continuous)]);
    row.push_back(values);
    const Tensor rows = feed(graph.action_rows, "action rows", {brains * agents});
    const std::vector<Update> written =
        scatter_to(shared.actions, rows, reshape(concat(row, 2), {brains * agents, action_width(spec)}));
    program.updates.insert(program.updates.end(), written.begin(), written.end());
  }
  return graph;
}

}  // namespace imprint::agent

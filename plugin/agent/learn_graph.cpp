#include "plugin/agent/learn_graph.h"

#include <cmath>

#include "compute/graph/autodiff.h"
#include "plugin/agent/learner.h"

namespace imprint::agent {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

// The columns of a minibatch [P, B, W].
struct Minibatch {
  Tensor rows;
  SampleLayout layout;

  Tensor columns(std::uint32_t first, std::uint32_t count) const { return narrow(rows, 2, first, count); }
  Tensor column(std::uint32_t index) const { return squeeze(columns(index, 1), 2); }
  Tensor whole_number(std::uint32_t index) const { return cast(column(index), DType::int32); }
};

// heads [P, B, G, V] -> [P, B]. Other goals' outputs are struck out element by element rather than cut away: the derivative then has the heads' shape
// from the start, which saves a pass over them forward and one backward.
Tensor feedback_loss(const BrainSpec& spec, const Minibatch& batch, const Tensor& heads) {
  const Tensor goal = unsqueeze(one_hot(batch.whole_number(batch.layout.goal), spec.goal_count), 3);
  const Tensor choice = unsqueeze(one_hot(batch.whole_number(batch.layout.branches), spec.action.branch_sizes[0]), 2);
  const Tensor error = square(sum(heads * (goal * choice), {2, 3}) - batch.column(batch.layout.target));
  if (spec.margin_weight == 0) return error;
  const Tensor rivals = sum(goal * (1.0f - choice) * square(relu(heads + spec.margin)), {2, 3});
  return error + spec.margin_weight * batch.column(batch.layout.margin) * rivals;
}

// heads [P, B, G, V] -> [P, B]
Tensor cloning_loss(const BrainSpec& spec, const Minibatch& batch, const Tensor& heads) {
  const Tensor outputs = Network::of_goal(heads, batch.whole_number(batch.layout.goal));
  Tensor loss = zeros({outputs.extent(0), outputs.extent(1)});
  for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b) {
    const std::uint32_t size = spec.action.branch_sizes[b];
    const Tensor log_probabilities = log_softmax(narrow(outputs, 2, spec.action.branch_offset(b), size), 2);
    const Tensor shown = one_hot(batch.whole_number(batch.layout.branches + static_cast<std::uint32_t>(b)), size);
    loss = loss - sum(log_probabilities * shown, {2});
  }
  if (spec.action.continuous_count > 0) {
    const Tensor predicted = narrow(outputs, 2, spec.action.choice_count(), spec.action.continuous_count);
    loss = loss + sum(square(predicted - batch.columns(batch.layout.continuous, spec.action.continuous_count)), {2});
  }
  return loss;
}

// Per-brain numbers [P] against a parameter [P, in, out].
Tensor per_brain(const Tensor& numbers) { return reshape(numbers, {numbers.extent(0), 1, 1}); }

struct Optimiser {
  Variable steps;                       // int32 [P]
  std::vector<Variable> first, second;  // moments, as the parameters
};

Optimiser make_optimiser(const BrainSpec& spec, const Network& network, LearnGraph& graph) {
  Optimiser optimiser;
  optimiser.steps = Variable::zeros("adam.steps", {spec.brain_count}, DType::int32);
  graph.state.push_back({"adam.steps", optimiser.steps, 0, INT32_MAX});
  for (const Variable& parameter : network.parameters()) {
    optimiser.first.push_back(Variable::zeros(parameter.name() + ".first_moment", parameter.shape()));
    optimiser.second.push_back(Variable::zeros(parameter.name() + ".second_moment", parameter.shape()));
    graph.state.push_back({optimiser.first.back().name(), optimiser.first.back()});
    graph.state.push_back({optimiser.second.back().name(), optimiser.second.back()});
  }
  return optimiser;
}

void add_updates(const BrainSpec& spec, const Network& network, const Optimiser& optimiser, const std::vector<Tensor>& raw_gradients,
                 const Tensor& losses, const Tensor& filled, ProgramDescription& program) {
  Tensor squared = zeros({spec.brain_count});
  for (const Tensor& gradient : raw_gradients) squared = squared + sum(square(gradient), {1, 2});
  const Tensor active = logical_and(greater(filled, 0), logical_and(is_finite(losses), is_finite(squared)));
  Tensor scale = ones({spec.brain_count});
  if (spec.max_gradient_norm > 0) scale = minimum(scale, spec.max_gradient_norm / (sqrt(squared) + 1e-6f));

  const Tensor steps = optimiser.steps.value() + cast(active, DType::int32);
  const Tensor t = cast(maximum(steps, 1), DType::float32);
  const Tensor correction1 = 1.0f - exp(t * std::log(kBeta1)), correction2 = sqrt(1.0f - exp(t * std::log(kBeta2)));
  const Tensor rate = spec.learning_rate / correction1;
  program.updates.push_back(Update::assign(optimiser.steps, steps));
  for (std::size_t i = 0; i < raw_gradients.size(); ++i) {
    const Variable& parameter = network.parameters()[i];
    const Tensor gradient = raw_gradients[i] * per_brain(scale);
    const Tensor first = kBeta1 * optimiser.first[i].value() + (1 - kBeta1) * gradient;
    const Tensor second = kBeta2 * optimiser.second[i].value() + (1 - kBeta2) * square(gradient);
    const Tensor step = per_brain(rate) * first / (sqrt(second) / per_brain(correction2) + kEpsilon);
    const auto assign = [&](const Variable& target, const Tensor& value) {
      program.updates.push_back(Update::assign(target, where(per_brain(active), value, target.value())));
    };
    assign(parameter, parameter.value() - step);
    assign(optimiser.first[i], first);
    assign(optimiser.second[i], second);
  }
}

}  // namespace

Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network) {
  const std::int64_t brains = spec.brain_count, capacity = spec.replay_capacity, per_step = rows_per_step(spec);
  const SampleLayout layout = SampleLayout::of(spec);
  LearnGraph graph;
  ProgramDescription& program = graph.description;
  program.name = spec.name + " learn";
  program.slots = learn_slots(spec.learn_period_frames);

  const Variable replay = Variable::zeros("replay", {brains * capacity, layout.width});
  const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed), static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
  const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
  const Optimiser optimiser = make_optimiser(spec, network, graph);
  graph.state.push_back({"replay", replay});
  graph.state.push_back({"generator", generator});

  const Tensor filled = input("filled", {brains}, DType::int32);
  const Tensor new_rows = input("rows", {brains * per_step}, DType::int32);
  const Tensor new_values = input("samples", {brains * per_step, layout.width});
  program.inputs = {filled, new_rows, new_values};

  const Shape picks{brains, spec.batch_size};
  const Tensor within = random_integers(generator.value(), picks, reshape(filled, {brains, 1}), 0);
  const Tensor drawn = within + iota(picks, 0) * static_cast<int>(capacity);
  const Minibatch batch{take(replay.value(), 0, drawn), layout};

  const Tensor heads = network.heads(batch.columns(layout.observation, spec.observation.count));
  const Tensor samples = spec.learner == LearnerKind::feedback ? feedback_loss(spec, batch, heads) : cloning_loss(spec, batch, heads);
  const Tensor losses = mean(batch.column(layout.weight) * samples, {1});
  program.outputs = {losses};

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  std::vector<Tensor> parameters;
  for (const Variable& parameter : network.parameters()) parameters.push_back(parameter.value());
  IMPRINT_ASSIGN(const std::vector<Tensor> raw_gradients, gradients(sum(losses), parameters));
  add_updates(spec, network, optimiser, raw_gradients, losses, filled, program);
  program.updates.push_back(Update::assign(generator, generator_next(generator.value())));
  program.updates.push_back(Update::scatter_rows(replay, new_rows, new_values));
  return graph;
}

}  // namespace imprint::agent

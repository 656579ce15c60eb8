#include "plugin/agent/learn_graph.h"

#include <limits>

#include "compute/graph/autodiff.h"
#include "compute/nn/losses.h"
#include "compute/nn/optimiser.h"
#include "plugin/agent/learner.h"
#include "plugin/agent/state_reader.h"

namespace imprint::agent {
namespace {

// The columns of a minibatch [P, B, W].
struct Minibatch {
  Tensor rows;
  SampleLayout layout;

  Tensor columns(std::uint32_t first, std::uint32_t count) const { return narrow(rows, 2, first, count); }
  Tensor column(std::uint32_t index) const { return squeeze(columns(index, 1), 2); }
  Tensor whole_number(std::uint32_t index) const { return cast(column(index), DType::int32); }
};

// heads [P, B, G, V] -> [P, B]. The goal's outputs are a sum in which the others' are struck out: its derivative spreads each over the goals, where that
// of a gather would have to look for them.
Tensor feedback_loss(const BrainSpec& spec, const Minibatch& batch, const Tensor& heads) {
  const Tensor goal = unsqueeze(one_hot(batch.whole_number(batch.layout.goal), spec.goal_count), 3);
  const Tensor choice = one_hot(batch.whole_number(batch.layout.branches), spec.action.branch_sizes[0]);
  const Tensor outputs = sum(heads * goal, {2});
  const Tensor error = square(sum(outputs * choice, {2}) - batch.column(batch.layout.target));
  if (spec.margin_weight == 0) return error;
  const Tensor rivals = sum((1.0f - choice) * square(relu(outputs + spec.margin)), {2});
  return error + spec.margin_weight * batch.column(batch.layout.margin) * rivals;
}

// heads [P, B, G, V] -> [P, B]
Tensor cloning_loss(const BrainSpec& spec, const Minibatch& batch, const Tensor& heads) {
  const Tensor outputs = Network::of_goal(heads, batch.whole_number(batch.layout.goal));
  Tensor loss = zeros({outputs.extent(0), outputs.extent(1)});
  for (std::size_t b = 0; b < spec.action.branch_sizes.size(); ++b) {
    const Tensor logits = narrow(outputs, 2, spec.action.branch_offset(b), spec.action.branch_sizes[b]);
    const Tensor shown = batch.whole_number(batch.layout.branches + static_cast<std::uint32_t>(b));
    loss = loss + nn::cross_entropy(logits, shown, nn::Reduction::none);
  }
  if (spec.action.continuous_count > 0) {
    const Tensor predicted = narrow(outputs, 2, spec.action.choice_count(), spec.action.continuous_count);
    loss = loss + sum(square(predicted - batch.columns(batch.layout.continuous, spec.action.continuous_count)), {2});
  }
  return loss;
}

}  // namespace

Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network, const Variable& sights) {
  const std::int64_t brains = spec.brain_count, rows = brains * rows_per_step(spec), width = SampleLayout::of(spec).width;
  LearnInputs inputs{input("filled", {brains}, DType::int32), input("rows", {rows}, DType::int32), input("samples", {rows, width}), {}};
  if (sights.ok()) inputs.sights = input("sights", {rows}, DType::int32);
  IMPRINT_ASSIGN(LearnGraph graph, describe_learning_from(spec, network, inputs, sights));
  graph.description.inputs = {inputs.filled, inputs.rows, inputs.samples};
  if (sights.ok()) graph.description.inputs.push_back(inputs.sights);
  return graph;
}

Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network, const LearnInputs& given, const Variable& sights) {
  const std::int64_t brains = spec.brain_count, capacity = spec.replay_capacity;
  const SampleLayout layout = SampleLayout::of(spec);
  LearnGraph graph;
  ProgramDescription& program = graph.description;
  program.name = spec.name + " learn";
  program.slots = learn_slots(spec.learn_period_frames);
  program.yields = true;

  const Variable replay = Variable::zeros(kReplayName, {brains * capacity, layout.width});
  const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed), static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
  const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
  const nn::Adam adam(network.parameters(), {.groups = brains});
  add_state(graph.state, "adam", adam.state());
  graph.state.push_back({kReplayName, replay});
  graph.state.push_back({"generator", generator});

  const Tensor& filled = given.filled;
  Tensor new_values = given.samples;
  if (sights.ok()) {
    graph.has_sights = true;
    const Tensor seen = take(sights.value(), 0, maximum(given.sights, 0));
    const Tensor observation = where(greater_equal(unsqueeze(given.sights, 1), 0), seen, narrow(new_values, 1, layout.observation, spec.observation.count));
    const std::int64_t rest = layout.observation + spec.observation.count;  // the observation is the first of the columns
    new_values = concat({observation, narrow(new_values, 1, rest, layout.width - rest)}, 1);
  }

  const Shape picks{brains, spec.batch_size};
  const Tensor within = random_integers(generator.value(), picks, reshape(filled, {brains, 1}), 0);
  const Tensor drawn = within + iota(picks, 0) * static_cast<int>(capacity);
  const Minibatch batch{take(replay.value(), 0, drawn), layout};

  const Tensor heads = network.heads(batch.columns(layout.observation, spec.observation.count));
  const Tensor samples = spec.learner == LearnerKind::feedback ? feedback_loss(spec, batch, heads) : cloning_loss(spec, batch, heads);
  const Tensor losses = nn::reduce_loss(batch.column(layout.weight) * samples, nn::Reduction::group_mean);
  program.outputs = {losses};

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(losses), network.parameters().values()));
  const double max_norm = spec.max_gradient_norm > 0 ? spec.max_gradient_norm : std::numeric_limits<float>::max();
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped, nn::clip_by_global_norm(raw, max_norm, brains));
  const Tensor active = logical_and(greater(filled, 0), logical_and(is_finite(losses), is_finite(clipped.norm)));
  IMPRINT_ASSIGN(program.updates, adam.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  program.updates.push_back(Update::assign(generator, generator_next(generator.value())));
  program.updates.push_back(Update::scatter_rows(replay, given.rows, new_values));
  return graph;
}

}  // namespace imprint::agent

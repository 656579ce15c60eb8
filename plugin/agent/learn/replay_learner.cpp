#include "plugin/agent/learn/replay_learner.h"

#include <algorithm>

#include "compute/graph/autodiff.h"
#include "compute/nn/losses.h"
#include "compute/nn/optimiser.h"

namespace imprint::agent {
namespace {

// The new values of some variables, in their order.
std::vector<Tensor> values_of(std::span<const Update> updates, const nn::Parameters& variables) {
  std::vector<Tensor> values;
  for (const nn::Parameter& parameter : variables)
    values.push_back(std::ranges::find(updates, parameter.variable.state(), [](const Update& update) {
                       return update.target.state();
                     })->value);
  return values;
}

}  // namespace

Result<> ReplayLearner::describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                                 LearnGraph& graph) const {
  const std::int64_t brains = spec.brain_count, capacity = spec.replay_capacity;
  IMPRINT_ASSIGN(const std::unique_ptr<Objective> objective, this->objective(spec));
  const SampleLayout columns = layout(spec);
  const Variable replay = Variable::zeros(kReplayName, {brains * capacity, columns.width});
  const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed),
                                static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
  const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
  const nn::Adam adam(network.parameters(), {.groups = brains});
  add_state(graph.state, "adam", adam.state());
  graph.state.push_back({kReplayName, replay});
  graph.state.push_back({"generator", generator});
  for (StateVariable& entry : objective->state()) graph.state.push_back(std::move(entry));

  const Shape picks{brains, spec.batch_size};
  const Tensor within = random_integers(generator.value(), picks, reshape(intake.filled, {brains, 1}), 0);
  const Tensor drawn = within + iota(picks, 0) * static_cast<int>(capacity);
  const Tensor losses = nn::reduce_loss(objective->losses({take(replay.value(), 0, drawn), columns}, network),
                                        nn::Reduction::group_mean);
  ProgramDescription& program = graph.description;
  program.outputs = {losses};

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(losses), network.parameters().values()));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                 nn::clip_by_global_norm(raw, max_gradient_norm(spec), brains));
  const Tensor active =
      logical_and(greater(intake.filled, 0), logical_and(is_finite(losses), is_finite(clipped.norm)));
  IMPRINT_ASSIGN(program.updates,
                 adam.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  nn::Parameters count;
  count.add("step", adam.state().find("step")->variable);
  const OptimiserStep stepped{values_of(program.updates, network.parameters()),
                              values_of(program.updates, count)[0], active};
  for (Update& update : objective->updates(stepped)) program.updates.push_back(std::move(update));
  program.updates.push_back(Update::assign(generator, generator_next(generator.value())));
  program.updates.push_back(Update::scatter_rows(replay, intake.rows, intake.samples));
  return {};
}

}  // namespace imprint::agent

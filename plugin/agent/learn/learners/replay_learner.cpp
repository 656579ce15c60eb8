#include "plugin/agent/learn/learners/replay_learner.h"

#include <algorithm>
#include <optional>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/losses/losses.h"
#include "compute/nn/optimisers/optimiser.h"
#include "plugin/agent/learn/learners/recall.h"
#include "plugin/agent/learn/samples/replay_memory.h"

namespace imprint::agent {
namespace {

constexpr float kLeastRate = 1.0f / 32;  // share of the first learning rate

constexpr std::uint32_t kDemonstrationStream = 16, kModelStream = 17, kMixStream = 18;

// Signals see the minibatch, and their rewards replace those of its samples.
Result<> add_signals(const BrainSpec& spec, auto& draw, LearnGraph& graph) {
  const std::shared_ptr<const nn::RewardSignals> signals = make_signals(spec);
  if (!signals) return {};
  std::vector<Update>& updates = graph.description.updates;
  const nn::SignalRows seen = signal_rows(spec, draw.batch);
  const nn::SignalRows rows =
      nn::RewardSignals::scaled(seen, signals->watch(seen.observation, draw.there, updates));
  draw.batch.rewards = signals->total(draw.batch.column(draw.batch.layout.reward), rows, draw.there, updates);
  nn::SignalRows model;
  if (signals->imitates()) {
    const Minibatch shown = draw.demonstrations->draw(draw.generator, spec.batch_size, kModelStream);
    model = nn::RewardSignals::scaled(demonstration_signal_rows(spec, shown), signals->seen());
  }
  IMPRINT_ASSIGN(const std::vector<Update> learned,
                 signals->learn(rows, model, draw.demonstrations ? draw.demonstrations->there() : Tensor(),
                                draw.there, draw.generator, kMixStream));
  updates.insert(updates.end(), learned.begin(), learned.end());
  add_state(graph.state, "signals", signals->state());
  return {};
}

// The new values of some variables, in their order.
std::vector<Tensor> values_of(std::span<const Update> updates, const nn::Parameters& variables) {
  std::vector<Tensor> values;
  for (const nn::Parameter& parameter : variables)
    values.push_back(std::ranges::find(updates, parameter.variable.state(), [](const Update& update) {
                       return update.target.state();
                     })->value);
  return values;
}

// float32 [P], or a number where it does not fall. Counts minibatches in a state variable of its own, also
// where the rate stays: files fit then.
Tensor falling_rate(const BrainSpec& spec, const Tensor& active, const Tensor& changed, LearnGraph& graph) {
  const Variable age = Variable::zeros("rate_age", {spec.brain_count});
  graph.state.push_back({"rate_age", age});
  const Tensor next = age.value() + cast(active, DType::float32);
  graph.description.updates.push_back(
      Update::assign(age, changed.ok() ? where(changed, zeros_like(next), next) : next));
  if (spec.rate_half_life == 0) return spec.learning_rate;
  const Tensor fallen = 1.0f / (age.value() * (1.0f / static_cast<float>(spec.rate_half_life)) + 1.0f);
  return maximum(fallen, kLeastRate) * spec.learning_rate;
}

}  // namespace

Result<> MemoryLearner::describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                                 LearnGraph& graph) const {
  const std::int64_t brains = spec.brain_count;
  const SampleLayout columns = layout(spec);
  const ReplayMemory memory(spec);
  const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed),
                                static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
  const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
  for (StateVariable& entry : memory.state()) graph.state.push_back(std::move(entry));
  graph.state.push_back({"generator", generator});
  std::optional<Recall> recall;
  if (records_steps() && spec.follow_changes) recall.emplace(spec, network.change_epsilon(), graph);
  const auto rows_of = [&] {
    if (recall) return recall->draw(generator.value(), intake.filled);
    if (draws_newest()) return memory.draw_rows(generator.value(), intake.filled, intake.next_row);
    return random_integers(generator.value(), {brains, spec.batch_size}, reshape(intake.filled, {brains, 1}),
                           0);
  };
  const Tensor rows = rows_of();
  const std::int64_t arriving = intake.rows.extent(0) / brains;
  Tensor changed;
  if (recall)
    changed = recall->take_in(
        Minibatch{reshape(intake.samples, {brains, arriving, columns.width}), columns}.column(columns.reward),
        reshape(greater_equal(intake.rows, 0), {brains, arriving}), graph.description.updates);
  Draw draw{memory.draw(rows), generator.value(), changed, greater(intake.filled, 0), {}};
  draw.active = draw.there;
  if (spec.keeps_demonstrations()) {
    draw.demonstrations.emplace(spec, intake);
    draw.demonstration_batch =
        draw.demonstrations->draw(generator.value(), spec.demonstration_batch, kDemonstrationStream);
    draw.active = logical_or(draw.there, draw.demonstrations->there());
    graph.state.push_back({draw.demonstrations->age().name(), draw.demonstrations->age()});
    for (Update& update : draw.demonstrations->count(draw.active))
      graph.description.updates.push_back(std::move(update));
  }
  IMPRINT_CHECK(add_signals(spec, draw, graph));
  IMPRINT_CHECK(learn(spec, network, intake, draw, graph));
  graph.description.updates.push_back(Update::assign(generator, generator_next(generator.value())));
  memory.keep(intake.rows, intake.samples, graph.description.updates);
  return {};
}

Result<> ReplayLearner::learn(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                              const Draw& draw, LearnGraph& graph) const {
  const std::int64_t brains = spec.brain_count;
  IMPRINT_ASSIGN(const std::unique_ptr<Objective> objective, this->objective(spec));
  nn::Parameters trained = network.parameters();
  trained.add("", objective->parameters());
  const nn::Adam adam(trained, {.groups = brains});
  add_state(graph.state, "adam", adam.state());
  add_state(graph.state, "beside", objective->parameters());
  for (StateVariable& entry : objective->state()) graph.state.push_back(std::move(entry));
  const Objective::Scored scored = objective->score(draw.batch, network);
  Tensor losses = nn::reduce_loss(scored.losses, nn::Reduction::group_mean);
  if (draw.demonstrations) {
    const Tensor shown = objective->demonstration_losses(draw.demonstration_batch, network);
    losses = where(draw.there, losses, zeros_like(losses)) +
             draw.demonstrations->loss(draw.demonstration_batch, shown);
  }
  ProgramDescription& program = graph.description;
  program.outputs = {losses};
  const Tensor penalty = objective->penalty(network, intake.filled);
  const Tensor total = penalty.ok() ? losses + penalty : losses;

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(total), trained.values()));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                 nn::clip_by_global_norm(raw, max_gradient_norm(spec), brains));
  const Tensor active = logical_and(draw.active, logical_and(is_finite(losses), is_finite(clipped.norm)));
  const Tensor rate =
      records_steps() ? falling_rate(spec, active, draw.changed, graph) : Tensor(spec.learning_rate);
  std::vector<std::pair<Metric, Tensor>> metrics = scored.metrics;
  metrics.emplace_back(Metric::gradient_norm, reshape(clipped.norm, {brains}));
  if (records_steps() && spec.rate_half_life > 0) metrics.emplace_back(Metric::learning_rate, rate);
  add_metrics(metrics, graph);
  IMPRINT_ASSIGN(const std::vector<Update> steps,
                 adam.step(clipped.gradients, rate, cast(active, DType::float32)));
  program.updates.insert(program.updates.end(), steps.begin(), steps.end());
  nn::Parameters count;
  count.add("step", adam.state().find("step")->variable);
  const OptimiserStep stepped{values_of(program.updates, trained), values_of(program.updates, count)[0],
                              active};
  for (Update& update : objective->updates(stepped)) program.updates.push_back(std::move(update));
  const SampleLayout& columns = draw.batch.layout;
  const std::int64_t arriving = intake.rows.extent(0) / brains;
  objective->take_in({reshape(intake.samples, {brains, arriving, columns.width}), columns},
                     reshape(greater_equal(intake.rows, 0), {brains, arriving}), network, program.updates);
  return {};
}

SchemaSetting follows_changes(const BrainSpec& spec) {
  return {"follow_changes", spec.follow_changes, true, spec.follow_changes ? nullptr : "unchanging"};
}

}  // namespace imprint::agent

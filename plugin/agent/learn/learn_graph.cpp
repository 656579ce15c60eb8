#include "plugin/agent/learn/learn_graph.h"

#include <algorithm>
#include <limits>

#include "compute/graph/autodiff.h"
#include "compute/nn/losses.h"
#include "compute/nn/optimiser.h"
#include "plugin/agent/keep/state_reader.h"
#include "plugin/agent/learn/learner.h"
#include "plugin/agent/learn/objective.h"
#include "plugin/agent/learn/rollout_graph.h"
#include "plugin/agent/learn/trace_graph.h"

namespace imprint::agent {
namespace {

double max_norm(const BrainSpec& spec) {
  return spec.max_gradient_norm > 0 ? spec.max_gradient_norm : std::numeric_limits<float>::max();
}

// What is given, with the observations that lie in the ring instead: samples are as they come to lie in
// memory, [P * K, W].
LearnInputs take_in(const BrainSpec& spec, const SampleLayout& layout, LearnInputs given,
                    const Variable& sights) {
  if (!sights.ok()) return given;
  const Tensor seen = take(sights.value(), 0, maximum(given.sights, 0));
  const Tensor own = narrow(given.samples, 1, layout.observation, spec.observation.count);
  const Tensor observation = where(greater_equal(unsqueeze(given.sights, 1), 0), seen, own);
  const std::int64_t rest =
      layout.observation + spec.observation.count;  // the observation is the first of the columns
  given.samples = concat({observation, narrow(given.samples, 1, rest, layout.width - rest)}, 1);
  return given;
}

// The values that a step gives to some variables, in their order.
std::vector<Tensor> values_of(std::span<const Update> updates, const nn::Parameters& variables) {
  std::vector<Tensor> values;
  for (const nn::Parameter& parameter : variables)
    values.push_back(std::ranges::find(updates, parameter.variable.state(), [](const Update& update) {
                       return update.target.state();
                     })->value);
  return values;
}

Status describe_replaying(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                          LearnGraph& graph) {
  const std::int64_t brains = spec.brain_count, capacity = spec.replay_capacity;
  const SampleLayout layout = SampleLayout::of(spec);
  IMPRINT_ASSIGN(const std::unique_ptr<Objective> objective, make_objective(spec));
  const Variable replay = Variable::zeros(kReplayName, {brains * capacity, layout.width});
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
  const Tensor losses = nn::reduce_loss(objective->losses({take(replay.value(), 0, drawn), layout}, network),
                                        nn::Reduction::group_mean);
  ProgramDescription& program = graph.description;
  program.outputs = {losses};

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(losses), network.parameters().values()));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped, nn::clip_by_global_norm(raw, max_norm(spec), brains));
  const Tensor active =
      logical_and(greater(intake.filled, 0), logical_and(is_finite(losses), is_finite(clipped.norm)));
  IMPRINT_ASSIGN(program.updates,
                 adam.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  nn::Parameters count;
  count.add("step", adam.state().find("step")->variable);
  const Stepped stepped{values_of(program.updates, network.parameters()),
                        values_of(program.updates, count)[0], active};
  for (Update& update : objective->follow(stepped)) program.updates.push_back(std::move(update));
  program.updates.push_back(Update::assign(generator, generator_next(generator.value())));
  program.updates.push_back(Update::scatter_rows(replay, intake.rows, intake.samples));
  return {};
}

}  // namespace

Result<Program> LearnGraph::compile(Runtime& runtime) const {
  if (sequence.parts.empty()) return Program::compile(runtime, description);
  return Program::compile(runtime, sequence);
}

Status LearnGraph::bake(Baker& baker, Baker::Groups groups, std::span<const Variable> apart) const {
  if (sequence.parts.empty()) return baker.add(description, groups, apart);
  return baker.add(sequence, groups, apart);
}

Result<LearnGraph> describe_learning(const BrainSpec& spec, const Network& network, const Variable& sights) {
  const std::int64_t brains = spec.brain_count, rows = brains * rows_per_step(spec),
                     width = SampleLayout::of(spec).width;
  LearnInputs inputs{input("filled", {brains}, DType::int32),
                     input("rows", {rows}, DType::int32),
                     input("samples", {rows, width}),
                     {}};
  if (sights.ok()) inputs.sights = input("sights", {rows}, DType::int32);
  IMPRINT_ASSIGN(LearnGraph graph, describe_learning_from(spec, network, inputs, sights));
  graph.description.inputs = {inputs.filled, inputs.rows, inputs.samples};
  if (sights.ok()) graph.description.inputs.push_back(inputs.sights);
  for (ProgramPart& part : graph.sequence.parts) part.description.inputs = graph.description.inputs;
  return graph;
}

Result<LearnGraph> describe_learning_from(const BrainSpec& spec, const Network& network,
                                          const LearnInputs& given, const Variable& sights) {
  LearnGraph graph;
  graph.description.name = spec.name + " learn";
  graph.description.slots = learn_slots(spec.learn_period_frames);
  graph.description.yields = true;
  graph.has_sights = sights.ok();
  const LearnInputs intake = take_in(spec, SampleLayout::of(spec), given, sights);
  const LearnerTraits& learner = traits_of(spec.learner);
  if (learner.replays) {
    IMPRINT_CHECK(describe_replaying(spec, network, intake, graph));
  } else if (learner.rollouts) {
    IMPRINT_CHECK(
        describe_rollout_learning(spec, network, intake.filled, intake.samples, max_norm(spec), graph));
    graph.sequence.name = graph.description.name;
    graph.sequence.slots = graph.description.slots;
    graph.minibatches = graph.sequence.parts[1].repeat;
  } else {
    IMPRINT_CHECK(describe_tracing(spec, network, intake.filled, intake.samples, max_norm(spec), graph));
  }
  return graph;
}

}  // namespace imprint::agent

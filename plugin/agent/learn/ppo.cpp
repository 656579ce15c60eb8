#include "plugin/agent/learn/ppo.h"

#include "compute/base/text.h"
#include "compute/graph/autodiff.h"
#include "compute/nn/action_distribution.h"
#include "compute/nn/advantage.h"
#include "compute/nn/optimiser.h"
#include "compute/nn/ppo_loss.h"
#include "plugin/agent/spec/field_check.h"

namespace imprint::agent {
namespace {

Result<Network> make_critic(const BrainSpec& spec) {
  BrainSpec critic = spec;
  critic.action = {{}, 1};
  critic.seed += std::uint64_t{1} << 40;  // other first weights than the actor's
  return Network::create(critic, "critic");
}

// Rows of samples, equally many per brain.
struct Rows {
  const BrainSpec& spec;
  SampleLayout layout;
  Tensor samples;  // [P * R, W]

  std::int64_t brains() const { return spec.brain_count; }
  Shape by_brain() const { return {brains(), samples.extent(0) / brains()}; }
  Tensor columns(std::uint32_t first, std::size_t count) const {
    return narrow(samples, 1, first, static_cast<std::int64_t>(count));
  }
  Tensor column(std::uint32_t first) const { return reshape(columns(first, 1), by_brain()); }
  // [P, R, outputs] of the goal, for the observation in the given columns.
  Tensor outputs(const Network& network, std::uint32_t observation, std::uint32_t goal) const {
    const Tensor seen = reshape(columns(observation, spec.observation.count),
                                {brains(), samples.extent(0) / brains(), spec.observation.count});
    return Network::of_goal(network.heads(seen), cast(column(goal), DType::int32));
  }
  Tensor values(const Network& critic) const {
    return squeeze(outputs(critic, layout.observation, layout.goal), 2);
  }
  nn::ActionDistribution policy(const Network& actor) const {
    nn::ActionSpace space;
    for (const std::uint32_t size : spec.action.branch_sizes) space.branches.push_back(size);
    const Tensor logits = reshape(outputs(actor, layout.observation, layout.goal),
                                  {samples.extent(0), spec.action.output_count()});
    return {space, logits, {}, greater(columns(layout.allowed, spec.action.choice_count()), 0.5f)};
  }
  Tensor log_probabilities(const nn::ActionDistribution& policy) const {  // [P * R]
    return policy.log_probability(
        {cast(columns(layout.branches, spec.action.branch_sizes.size()), DType::int32), {}});
  }
};

// Passed from one part of an update to the next.
struct Work {
  Variable advantage, value_target, log_probability;  // float32 [P * steps]
  Variable order;  // int32 [P, epochs * steps]: the step at each place of each minibatch
  Variable turn;   // int32 [1]: number of the minibatch
  Variable sums;   // float32 [P]: sum of the losses

  std::vector<Variable> all() const { return {advantage, value_target, log_probability, order, turn, sums}; }
};

ProgramDescription prepare(const Rows& rollout, const Network& actor, const Network& learned,
                           const Network& critic, const Variable& generator, const Work& work) {
  const BrainSpec& spec = rollout.spec;
  const SampleLayout& layout = rollout.layout;
  const std::int64_t brains = spec.brain_count, steps = spec.rollout_steps;
  const Tensor next = squeeze(rollout.outputs(critic, layout.next_observation, layout.next_goal), 2);
  const Tensor begins = rollout.column(layout.begins);
  const auto by_time = [](const Tensor& of_brains) { return transpose(of_brains, 0, 1); };
  nn::Trajectories trajectories;
  trajectories.reward = by_time(rollout.column(layout.reward));
  trajectories.value = by_time(rollout.values(critic));
  trajectories.next_value = by_time(next * rollout.column(layout.continues));
  // A row continues in the next one unless that one begins a trajectory.
  trajectories.continues = by_time(1.0f - concat({narrow(begins, 1, 1, steps - 1), ones({brains, 1})}, 1));
  const nn::Advantages found =
      nn::generalised_advantages(trajectories, {.discount = spec.discount, .decay = spec.advantage_decay});

  ProgramDescription program{.name = "prepare"};
  program.updates = {
      Update::assign(work.advantage, reshape(by_time(found.advantage), {brains * steps})),
      Update::assign(work.value_target, reshape(by_time(found.value_target), {brains * steps})),
      Update::assign(work.log_probability, rollout.log_probabilities(rollout.policy(actor))),
      Update::assign(work.order,
                     reshape(random_permutation(generator.value(), {brains, spec.epochs, steps}, 0),
                             {brains, spec.epochs * steps})),
      Update::assign(work.turn, zeros({1}, DType::int32)),
      Update::assign(work.sums, zeros({brains})),
      Update::assign(generator, generator_next(generator.value()))};
  for (std::size_t i = 0; i < learned.parameters().size(); ++i)
    program.updates.push_back(
        Update::assign(learned.parameters()[i].variable, actor.parameters()[i].value()));
  return program;
}

Result<ProgramDescription> minibatch(const Rows& rollout, const Network& learned, const Network& critic,
                                     const nn::Adam& adam, const Tensor& filled, const Work& work) {
  const BrainSpec& spec = rollout.spec;
  const std::int64_t brains = spec.brain_count, steps = spec.rollout_steps, count = spec.batch_size;
  const Tensor places = work.turn.value() * static_cast<int>(count) + arange(count);
  const Shape by_brain{brains, count};
  const Tensor chosen = reshape(
      take(work.order.value(), 1, places) + iota(by_brain, 0) * static_cast<int>(steps), {brains * count});
  const Rows batch{spec, rollout.layout, take(rollout.samples, 0, chosen)};
  const auto of_chosen = [&](const Variable& variable) { return take(variable.value(), 0, chosen); };

  const nn::ActionDistribution policy = batch.policy(learned);
  const Tensor values = batch.values(critic);
  const nn::PpoEvaluation now{batch.log_probabilities(policy), policy.entropy(),
                              reshape(values, {brains * count})};
  nn::PpoBatch before;
  before.log_probability = of_chosen(work.log_probability);
  before.advantage =
      reshape(nn::standardised(reshape(of_chosen(work.advantage), by_brain)), {brains * count});
  before.value_target = of_chosen(work.value_target);
  const nn::PpoLoss loss = nn::ppo_loss(
      now, before, {.clip_range = spec.clip_range, .entropy_coefficient = spec.entropy_coefficient});

  // The loss is a mean over the rows of all brains, which share no weights. Times their number it is the sum
  // of each brain's own loss.
  std::vector<Tensor> parameters = learned.parameters().values();
  for (const Tensor& value : critic.parameters().values()) parameters.push_back(value);
  IMPRINT_ASSIGN(const std::vector<Tensor> raw,
                 gradients(loss.total * static_cast<float>(brains), parameters));
  IMPRINT_ASSIGN(const nn::ClippedGradients clipped,
                 nn::clip_by_global_norm(raw, max_gradient_norm(spec), brains));
  const Tensor finite = is_finite(clipped.norm);
  const Tensor active = logical_and(greater(filled, 0), finite);
  ProgramDescription program{.name = "minibatch"};
  IMPRINT_ASSIGN(program.updates,
                 adam.step(clipped.gradients, spec.learning_rate, cast(active, DType::float32)));
  const Tensor error = mean(square(values - reshape(before.value_target, by_brain)), {1});
  program.updates.push_back(
      Update::assign(work.sums, work.sums.value() + where(finite, error, clipped.norm)));
  program.updates.push_back(Update::assign(work.turn, work.turn.value() + 1));
  return program;
}

Result<> describe_update(const BrainSpec& spec, const SampleLayout& layout, const Network& network,
                         const LearnInputs& intake, LearnGraph& graph) {
  const std::int64_t brains = spec.brain_count, all = brains * spec.rollout_steps;
  IMPRINT_ASSIGN(const Network learned, Network::create(spec, "learned"));
  IMPRINT_ASSIGN(const Network critic, make_critic(spec));
  nn::Parameters parameters;
  parameters.add("actor", learned.parameters());
  parameters.add("critic", critic.parameters());
  const nn::Adam adam(parameters, {.epsilon = 1e-5, .groups = brains});
  const std::int32_t seed[4] = {static_cast<std::int32_t>(spec.seed),
                                static_cast<std::int32_t>(spec.seed >> 32), 0, 0};
  const Variable generator("generator", {4}, std::span<const std::int32_t>(seed));
  const Work work{
      Variable::zeros("advantage", {all}),
      Variable::zeros("value target", {all}),
      Variable::zeros("log-probability", {all}),
      Variable::zeros("order", {brains, std::int64_t{spec.epochs} * spec.rollout_steps}, DType::int32),
      Variable::zeros("turn", {1}, DType::int32),
      Variable::zeros("losses", {brains})};
  add_state(graph.state, "critic", critic.parameters());
  add_state(graph.state, "adam", adam.state());
  graph.state.push_back({"generator", generator});
  graph.work = work.all();
  for (const nn::Parameter& parameter : learned.parameters()) graph.work.push_back(parameter.variable);

  const Rows rollout{spec, layout, intake.samples};
  const std::uint32_t turns = spec.epochs * (spec.rollout_steps / spec.batch_size);
  ProgramPart first{prepare(rollout, network, learned, critic, generator, work), 1};
  IMPRINT_ASSIGN(ProgramDescription step, minibatch(rollout, learned, critic, adam, intake.filled, work));
  ProgramDescription last{.name = "publish"};
  for (std::size_t i = 0; i < learned.parameters().size(); ++i)
    last.updates.push_back(Update::assign(network.parameters()[i].variable, learned.parameters()[i].value()));
  last.outputs = {work.sums.value() / static_cast<float>(turns)};
  graph.sequence.parts = {std::move(first), {std::move(step), turns}, {std::move(last), 1}};
  graph.minibatches = turns;
  for (ProgramPart& part : graph.sequence.parts) part.description.yields = true;
  graph.sequence.own = graph.work;
  for (const StateVariable& entry : graph.state) graph.sequence.own.push_back(entry.variable);
  return {};
}

class PpoLearner final : public Learner {
 public:
  bool takes_feedback() const override { return true; }
  bool takes_demonstrations() const override { return false; }
  Result<> check_actions(const BrainSpec& spec) const override { return check_branches_only(spec); }
  Result<> check_settings(const BrainSpec& spec) const override {
    IMPRINT_CHECK(check_number("brain_create", "discount", spec.discount, 0, 1));
    IMPRINT_CHECK(check_range("brain_create", "rollout_steps", spec.rollout_steps, 1, 65536));
    IMPRINT_CHECK(check_range("brain_create", "epochs", spec.epochs, 1, 64));
    if (spec.batch_size == 0 || spec.rollout_steps % spec.batch_size != 0)
      return bad_field("brain_create", "batch_size", text(spec.batch_size),
                       text("a divisor of rollout_steps, ", spec.rollout_steps));
    if (std::uint64_t{spec.rollout_steps} * spec.epochs * spec.brain_count >= kMaxElements)
      return bad_field("brain_create", "rollout_steps * epochs * brain_count",
                       text(std::uint64_t{spec.rollout_steps} * spec.epochs * spec.brain_count),
                       text("less than ", kMaxElements));
    IMPRINT_CHECK(check_number("brain_create", "advantage_decay", spec.advantage_decay, 0, 1));
    IMPRINT_CHECK(check_number("brain_create", "clip_range", spec.clip_range, 1e-6f, 1));
    return check_number("brain_create", "entropy_coefficient", spec.entropy_coefficient, 0, 1e6f);
  }
  SampleKind sample_kind() const override { return SampleKind::transition; }
  SampleUse sample_use() const override { return SampleUse::rollout; }
  bool off_policy() const override { return false; }
  SampleLayout layout(const BrainSpec& spec) const override {
    return SampleLayout::begin(spec)
        .add(&SampleLayout::reward)
        .add(&SampleLayout::begins)
        .add(&SampleLayout::allowed, spec.action.choice_count())
        .add(&SampleLayout::continues)
        .add(&SampleLayout::next_observation, spec.observation.count)
        .add(&SampleLayout::next_goal);
  }
  // A draw from the softmax of the outputs.
  void explore(const BrainSpec&, const DecisionDraw& draw, std::span<const std::int32_t>,
               std::span<float> noise) const override {
    fill_gumbel(noise, draw);
  }
  Result<> describe(const BrainSpec& spec, const Network& network, const LearnInputs& intake,
                    LearnGraph& graph) const override {
    return describe_update(spec, layout(spec), network, intake, graph);
  }
};

}  // namespace

const Learner& ppo_learner() {
  static const PpoLearner learner;
  return learner;
}

}  // namespace imprint::agent

#include "compute/nn/learners/rollout_ppo.h"

#include <algorithm>
#include <utility>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/advantage.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

// Below this a deviation counts as this: features that hardly move are not blown up.
constexpr double kLeastDeviation = 0.05;

// [P] as it multiplies [P, rows, columns].
Tensor beside(const Tensor& per_brain) { return unsqueeze(unsqueeze(per_brain, 1), 2); }

}  // namespace

RolloutPpo::RolloutPpo(RolloutPpoOptions options, PolicyAndCritic acting, PolicyAndCritic learned,
                       RolloutBeside beside)
    : options_(std::move(options)),
      acting_(std::move(acting)),
      learned_(std::move(learned)),
      adam_(learned_.parameters, {.epsilon = options_.adam_epsilon, .groups = options_.groups}),
      beside_(std::move(beside)) {
  const std::int64_t brains = options_.brains(), all = brains * options_.steps;
  const std::int64_t drawn = options_.epochs * options_.steps;
  const std::int32_t seed[4] = {static_cast<std::int32_t>(options_.seed),
                                static_cast<std::int32_t>(options_.seed >> 32), 0, 0};
  generator_ = Variable(named("generator"), {4}, std::span<const std::int32_t>(seed));
  state_.add("adam", adam_.state());
  state_.add("generator", generator_);
  if (options_.normalise_observations) {
    observation_moments_ = moments("moments", options_.observations);
    fresh_ = Variable(named(kFresh), {brains}, std::vector<float>(static_cast<std::size_t>(brains), 1.0f));
    state_.add(kFresh, fresh_);
  }
  if (options_.normalise_rewards) return_moments_ = moments("returns", 1);
  if (options_.rate_updates > 0) {
    updates_ = Variable::zeros(named("updates"), {brains});
    state_.add("updates", updates_);
  }

  order_ = work("order", {brains, drawn}, DType::int32);
  advantage_ = work("advantage", {brains, drawn});
  value_target_ = work("value_target", {all});
  if (options_.clip_values) value_ = work("old_value", {all});
  if (options_.corrects_lag) log_probability_ = work("acting_log_probability", {all});
  turn_ = work("turn", {1}, DType::int32);
  sums_ = work("sums", {brains, kPpoMetrics});
  if (options_.max_divergence > 0) halted_ = work("halted", {brains});
  if (shares()) make_totals();
  make_beside();
}

std::string RolloutPpo::named(const std::string& name) const {
  return options_.name.empty() ? name : options_.name + "." + name;
}

Variable RolloutPpo::work(const std::string& name, const Shape& shape, DType dtype) {
  const Variable made = Variable::zeros(named(name), shape, dtype);
  work_.add(name, made);
  return made;
}

// ---- moments ----

GroupedMoments RolloutPpo::moments(const std::string& name, std::int64_t extent) {
  GroupedMoments made(named(name), options_.brains(), extent);
  state_.add(name, made.state());
  return made;
}

GroupedMoments::Fresh RolloutPpo::fresh(const Tensor& rows, std::int64_t column) const {
  if (!shares()) return GroupedMoments::of(rows);
  const auto part = [&](const Variable& total) { return narrow(total.value(), 2, column, rows.extent(2)); };
  return {part(total_mean_), part(total_variance_),
          static_cast<double>(rows.extent(1)) * static_cast<double>(options_.process_count)};
}

Tensor RolloutPpo::deviation() const {
  return maximum(sqrt(observation_moments_.now().variance), Tensor(kLeastDeviation));
}

// y = W x + b = (W s) ((x - m) / s) + (b + W m).
void RolloutPpo::unfold(const RolloutNetwork& network, const MomentValues& moments, const Tensor& active,
                        std::vector<Update>& updates) const {
  if (network.parameters.empty()) return;
  const Tensor changes = logical_and(active, less(fresh_.value(), 0.5f));
  const Tensor weight = network.parameters[0].value(), bias = network.parameters[1].value();
  const Tensor scale = maximum(sqrt(moments.variance), Tensor(kLeastDeviation));
  updates.push_back(Update::assign(network.parameters[0].variable,
                                   where(beside(changes), weight * transpose(scale, 1, 2), weight)));
  updates.push_back(Update::assign(network.parameters[1].variable,
                                   where(beside(changes), bias + matmul(moments.mean, weight), bias)));
}

void RolloutPpo::fold(const RolloutNetwork& from, const RolloutNetwork& to, const Tensor& active,
                      std::vector<Update>& updates) const {
  if (from.parameters.empty()) return;
  const Tensor scale = deviation(), centre = observation_moments_.now().mean;
  const Tensor weight = from.parameters[0].value() / transpose(scale, 1, 2);
  const Tensor bias = from.parameters[1].value() - matmul(centre, weight);
  const Variable &own_weight = to.parameters[0].variable, &own_bias = to.parameters[1].variable;
  updates.push_back(Update::assign(own_weight, where(beside(active), weight, own_weight.value())));
  updates.push_back(Update::assign(own_bias, where(beside(active), bias, own_bias.value())));
}

// ---- the update ----

std::uint32_t RolloutPpo::minibatches() const {
  return static_cast<std::uint32_t>(options_.epochs * (options_.steps / options_.minibatch));
}

Result<ProgramSequence> RolloutPpo::update(const RolloutSource& source, const Tensor& filled) const {
  const Tensor active = is_empty(filled) ? Tensor() : greater(filled, 0);
  ProgramSequence sequence;
  if (shares()) {
    IMPRINT_ASSIGN(sequence, shared_update(source, active));
  } else {
    IMPRINT_ASSIGN(const Minibatch batch, minibatch(source, active));
    IMPRINT_ASSIGN(ProgramDescription one, step(batch, active));
    sequence.parts = {
        {prepare(source.all(), active), 1}, {std::move(one), minibatches()}, {publish(learns(active)), 1}};
  }
  sequence.name = named("update");
  for (const Parameters* own : {&work_, &state_, &learned_.parameters})
    for (const Parameter& parameter : *own) sequence.own.push_back(parameter.variable);
  return sequence;
}

Tensor RolloutPpo::rate() const {
  if (options_.rate_updates == 0) return options_.learning_rate;
  const Tensor left = 1.0f - updates_.value() * Tensor(1.0 / static_cast<double>(options_.rate_updates));
  return maximum(left, 0.0f) * options_.learning_rate;
}

ActionDistribution RolloutPpo::distribution(const RolloutNetwork& network, const RolloutRows& rows,
                                            const Tensor& of) const {
  const std::int64_t brains = of.extent(0), count = of.extent(1), numbers = options_.action.continuous;
  Tensor log_deviation;
  if (numbers > 0) {
    log_deviation = network.log_deviation.value();
    if (log_deviation.rank() > 1)
      log_deviation = reshape(expand(log_deviation, {brains, count, numbers}), {brains * count, numbers});
  }
  return {options_.action, reshape(of, {brains * count, options_.action.outputs()}), log_deviation,
          rows.mask};
}

RolloutOutputs RolloutPpo::evaluate(const PolicyAndCritic& networks, const RolloutRows& rows,
                                    const Tensor& observation) const {
  if (networks.together) return networks.together(rows, observation);
  const Tensor policy = networks.policy.outputs(observation, rows.goal);
  const Tensor valued = networks.critic.outputs(observation, rows.goal);
  if (!has_signals()) return {policy, squeeze(valued, 2)};
  return {policy, squeeze(narrow(valued, 2, 0, 1), 2), narrow(valued, 2, 1, valued.extent(2) - 1)};
}

RolloutValues RolloutPpo::values(const PolicyAndCritic& networks, const RolloutRows& rollout) const {
  if (networks.values) return networks.values(rollout);
  if (has_signals()) {
    RolloutRows next = rollout;
    next.goal = rollout.next_goal;
    const RolloutOutputs own = evaluate(networks, rollout, rollout.observation),
                         later = evaluate(networks, next, rollout.next_observation);
    return {own.value, later.value, own.signal_values, later.signal_values};
  }
  const auto value = [&](const Tensor& observation, const Tensor& goal) {
    return squeeze(networks.critic.outputs(observation, goal), 2);
  };
  return {is_empty(rollout.value) ? value(rollout.observation, rollout.goal) : rollout.value,
          value(rollout.next_observation, rollout.next_goal)};
}

Tensor RolloutPpo::by_time(const Tensor& rows) const {
  const std::int64_t brains = options_.brains(), lanes = options_.lanes, time = options_.steps / lanes;
  if (brains == 1) return reshape(rows, {time, lanes});
  return reshape(transpose(reshape(rows, {brains, time, lanes}), 0, 1), {time, brains * lanes});
}

Tensor RolloutPpo::by_brain(const Tensor& time) const {
  const std::int64_t brains = options_.brains(), lanes = options_.lanes, steps = options_.steps;
  if (brains == 1) return reshape(time, {1, steps});
  return reshape(transpose(reshape(time, {steps / lanes, brains, lanes}), 0, 1), {brains, steps});
}

Tensor RolloutPpo::in_rollouts(const Tensor& rows) const {
  const std::int64_t brains = options_.brains(), count = rows.extent(1);
  if (brains == 1) return reshape(rows, {count});
  return reshape(rows + iota({brains, count}, 0) * static_cast<int>(options_.steps), {brains * count});
}

Tensor RolloutPpo::scaled_rewards(const RolloutRows& rollout, const Tensor& active,
                                  std::vector<Update>& updates) const {
  if (!options_.normalise_rewards) return rollout.reward;
  const std::int64_t column = options_.normalise_observations ? options_.observations : 0;
  const Tensor returns = discounted_returns(rollout.reward, rollout.follows, options_.discount);
  const MomentValues moments = return_moments_.grown(fresh(unsqueeze(returns, 2), column), active);
  return_moments_.assign(moments, updates);
  // Scaled, not shifted: the sign of a reward is the game's choice.
  return clamp(rollout.reward / sqrt(squeeze(moments.variance, 2) + Tensor(1e-8)), -10, 10);
}

// Advantages of one deviation. Where rewards are normalised, advantages that hardly differ are noise: they
// stay small, so that a policy does not drift before there is anything to learn.
Tensor RolloutPpo::standard(const Tensor& advantage) const {
  if (!options_.standardise_advantages || shares()) return advantage;  // shared_update does it later
  if (!options_.normalise_rewards || advantage.extent(-1) == 1) return standardised(advantage);
  const Tensor spread = maximum(sqrt(variance(advantage, {-1}, true)), Tensor(kLeastSpread));
  return (advantage - mean(advantage, {-1}, true)) / spread;
}

Tensor RolloutPpo::tells(const RolloutRows& rollout) {
  const Tensor differs = greater(max(rollout.reward, {1}, true), min(rollout.reward, {1}, true));
  const Tensor ends = less_equal(min(rollout.continues, {1}, true), 0.0f);
  const Tensor earns = greater(min(rollout.reward, {1}, true), 0.0f);
  return cast(logical_or(logical_or(differs, ends), earns), DType::float32);
}

// Each block of rows has its own permutation, and gives each minibatch as many rows as the others.
Tensor RolloutPpo::drawn_order() const {
  const std::int64_t brains = options_.brains(), epochs = options_.epochs, shards = options_.shards,
                     own = options_.steps / shards, sequence = options_.sequence;
  std::vector<Tensor> blocks;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const auto stream = static_cast<std::uint32_t>(options_.process_index + shard);
    Tensor order = random_permutation(generator_.value(), {brains, epochs, own / sequence}, stream);
    if (sequence > 1) order = unsqueeze(order * static_cast<int>(sequence), 3) + arange(sequence);
    if (shards > 1)
      order = reshape(order,
                      {brains, epochs, own * shards / options_.minibatch, 1, options_.minibatch / shards}) +
              static_cast<int>(shard * own);
    blocks.push_back(order);
  }
  return reshape(shards > 1 ? concat(blocks, 3) : blocks[0], {brains, epochs * options_.steps});
}

Tensor RolloutPpo::acting_log_probability(const RolloutRows& rollout) const {
  const Tensor policy = evaluate(acting_, rollout, rollout.observation).policy;
  const Tensor found =
      distribution(acting_.policy, rollout, policy).log_probability({rollout.discrete, rollout.continuous});
  return reshape(found, {options_.brains(), options_.steps});
}

// Each minibatch's advantages are standardised here and stored in the order of the minibatches. The rows of a
// minibatch are then independent until their gradients are added.
ProgramDescription RolloutPpo::prepare(const RolloutRows& rollout, const Tensor& active) const {
  const std::int64_t brains = options_.brains(), steps = options_.steps, epochs = options_.epochs;
  ProgramDescription program{.name = "prepare"};
  const RolloutValues valued = values(acting_, rollout);
  const Tensor value = valued.own, next = valued.next * rollout.continues;
  const Tensor reward = scaled_rewards(rollout, active, program.updates);
  const Trajectories steps_by_time{by_time(reward), by_time(value), by_time(next), by_time(rollout.follows)};
  const Tensor acting = options_.corrects_lag ? acting_log_probability(rollout) : Tensor();
  const Advantages found =
      options_.corrects_lag
          ? vtrace_advantages(steps_by_time, by_time(acting - rollout.log_probability),
                              {.discount = options_.discount, .decay = options_.advantage_decay})
          : generalised_advantages(steps_by_time,
                                   {.discount = options_.discount, .decay = options_.advantage_decay});
  const Tensor advantage = by_brain(found.advantage), target = by_brain(found.value_target);
  const Tensor order = drawn_order();
  const Tensor all_advantages =
      has_signals() ? with_signals(advantage, rollout, valued, active, program.updates) : advantage;
  const Tensor ordered = take(reshape(all_advantages, {brains * steps}), 0, in_rollouts(order));

  // 1 - variance of the error / variance of the target; 0 where the target is constant. The target's mean is
  // computed from its parts, which are ready earlier.
  const Tensor spread =
      mean(square(target - (mean(advantage, {1}, true) + mean(value, {1}, true))), {1}, true);
  const Tensor explained =
      where(spread > 0.0f, 1.0f - variance(advantage, {1}, true, 0) / spread, zeros({brains, 1}));

  const auto keep = [&](const Variable& variable, const Tensor& content) {
    program.updates.push_back(Update::assign(variable, content));
  };
  Tensor standardised_order = reshape(standard(reshape(ordered, {brains, minibatches(), options_.minibatch})),
                                      {brains, epochs * steps});
  if (options_.wait_for_reward) standardised_order = standardised_order * tells(rollout);
  keep(order_, order);
  keep(advantage_, standardised_order);
  if (total_advantage_.ok())
    keep(total_advantage_, mean(reshape(ordered, {brains, minibatches(), options_.minibatch}), {2}, true) *
                               Tensor(1.0 / static_cast<double>(options_.process_count)));
  keep(value_target_, reshape(target, {brains * steps}));
  if (options_.clip_values) keep(value_, reshape(value, {brains * steps}));
  if (options_.corrects_lag) keep(log_probability_, reshape(acting, {brains * steps}));
  keep(turn_, zeros({1}, DType::int32));
  keep(sums_, concat({zeros({brains, kPpoMetrics - 1}), explained}, 1));
  if (options_.max_divergence > 0) keep(halted_, zeros({brains}));
  keep(generator_, generator_next(generator_.value()));
  if (options_.normalise_observations) {
    const MomentValues moments = observed(rollout, active, program.updates);
    unfold(learned_.policy, moments, learns(active), program.updates);
    unfold(learned_.critic, moments, learns(active), program.updates);
  }
  return program;
}

Result<RolloutPpo::Minibatch> RolloutPpo::minibatch(const RolloutSource& source, const Tensor& active) const {
  const std::int64_t brains = options_.brains(), rows = brains * options_.minibatch;
  const Tensor places = turn_.value() * static_cast<int>(options_.minibatch) + arange(options_.minibatch);
  const Tensor chosen = in_rollouts(take(order_.value(), 1, places));
  const RolloutRows batch = source.some(chosen);

  const RolloutOutputs outputs = evaluate(learned_, batch, normalised(batch.observation));
  const ActionDistribution drawn = distribution(learned_.policy, batch, outputs.policy);
  PpoEvaluation now;
  now.log_probability = drawn.log_probability({batch.discrete, batch.continuous});
  now.entropy = drawn.entropy();
  now.value = reshape(outputs.value, {rows});
  PpoBatch before;
  before.log_probability = options_.corrects_lag ? take(log_probability_.value(), 0, chosen)
                                                 : reshape(batch.log_probability, {rows});
  before.advantage = reshape(take(advantage_.value(), 1, places), {rows});
  before.value_target = take(value_target_.value(), 0, chosen);
  if (options_.clip_values) before.value = take(value_.value(), 0, chosen);
  Minibatch batched;
  batched.loss = ppo_loss(now, before,
                          {.clip_range = options_.clip_range,
                           .entropy_coefficient = options_.entropy_coefficient,
                           .value_coefficient = options_.value_coefficient,
                           .clip_value = options_.clip_values,
                           .groups = brains});

  Tensor total = batched.loss.total;
  if (has_signals()) total = total + signal_loss(outputs, chosen);
  if (beside_.loss) {
    if (!is_empty(active)) total = where(active, total, zeros_like(total));
    total = total + shown_loss();
  }
  IMPRINT_CHECK(learn_beside(batch, active, batched.beside));

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(batched.gradients, gradients(sum(total), adam_.parameters().values()));
  return batched;
}

Result<ProgramDescription> RolloutPpo::step(const Minibatch& from, const Tensor& has_rollout) const {
  const std::int64_t brains = options_.brains();
  const PpoLoss& loss = from.loss;
  IMPRINT_ASSIGN(const ClippedGradients clipped,
                 clip_by_global_norm(from.gradients, options_.max_gradient_norm, options_.groups));
  const Tensor norm = reshape(clipped.norm, {brains});
  Tensor active = is_finite(norm);
  if (!is_empty(has_rollout)) active = logical_and(learns(has_rollout), active);
  ProgramDescription program{.name = "minibatch"};
  program.updates = from.beside;
  if (options_.max_divergence > 0) {
    Tensor beyond = greater(loss.divergence, Tensor(options_.max_divergence));
    if (beside_.loss && !is_empty(has_rollout)) beyond = logical_and(beyond, has_rollout);
    const Tensor halted = maximum(halted_.value(), cast(beyond, DType::float32));
    program.updates.push_back(Update::assign(halted_, halted));
    active = logical_and(active, less(halted, 0.5f));
  }
  IMPRINT_ASSIGN(std::vector<Update> steps,
                 adam_.step(clipped.gradients, rate(), cast(active, DType::float32)));
  program.updates.insert(program.updates.end(), steps.begin(), steps.end());
  const Tensor metrics =
      stack({loss.policy, loss.value, loss.entropy, loss.divergence, loss.clipped, norm, zeros({brains})}, 1);
  program.updates.push_back(Update::assign(sums_, sums_.value() + metrics));
  program.updates.push_back(Update::assign(turn_, turn_.value() + 1));
  return program;
}

ProgramDescription RolloutPpo::publish(const Tensor& active) const {
  ProgramDescription program{.name = "publish"};
  if (options_.rate_updates > 0) {
    const Tensor counts = updates_.value();
    program.updates.push_back(Update::assign(
        updates_, counts + (is_empty(active) ? ones_like(counts) : cast(active, DType::float32))));
  }
  if (options_.normalise_observations) {
    fold(learned_.policy, acting_.policy, active, program.updates);
    fold(learned_.critic, acting_.critic, active, program.updates);
    const Tensor none = zeros({options_.brains()});
    program.updates.push_back(Update::assign(fresh_, where(active, none, fresh_.value())));
  }
  for (std::size_t i = 0; i < acting_.parameters.size(); ++i) {
    const Variable& target = acting_.parameters[i].variable;
    const auto folded = std::ranges::find(program.updates, target.state(),
                                          [](const Update& update) { return update.target.state(); });
    if (folded == program.updates.end())
      program.updates.push_back(Update::assign(target, learned_.parameters[i].value()));
  }
  const Tensor share =
      concat({full({kPpoMetrics - 1}, 1.0 / static_cast<double>(minibatches())), ones({1})}, 0);
  program.outputs = {(sums_.value() * share).named("metrics")};
  return program;
}

}  // namespace imprint::nn

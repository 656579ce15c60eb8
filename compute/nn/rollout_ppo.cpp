#include "compute/nn/rollout_ppo.h"

#include <algorithm>
#include <utility>

#include "compute/graph/autodiff.h"
#include "compute/nn/advantage.h"
#include "compute/nn/ppo_loss.h"

namespace imprint::nn {

namespace {

// Below this a deviation counts as this: features that hardly move are not blown up.
constexpr double kLeastDeviation = 0.05;

Tensor by_time(const Tensor& by_brain) { return transpose(by_brain, 0, 1); }

// [P] as it multiplies [P, rows, columns].
Tensor beside(const Tensor& per_brain) { return unsqueeze(unsqueeze(per_brain, 1), 2); }

}  // namespace

Parameters PolicyAndCritic::parameters() const {
  Parameters both;
  both.add("actor", policy.parameters);
  if (policy.log_deviation.ok()) both.add("actor.log_deviation", policy.log_deviation);
  both.add("critic", critic.parameters);
  return both;
}

RolloutPpo::RolloutPpo(RolloutPpoOptions options, PolicyAndCritic acting, PolicyAndCritic learned)
    : options_(std::move(options)),
      acting_(std::move(acting)),
      learned_(std::move(learned)),
      adam_(learned_.parameters(), {.epsilon = options_.adam_epsilon, .groups = options_.brains}) {
  const std::int64_t brains = options_.brains, all = brains * options_.steps;
  const std::int32_t seed[4] = {static_cast<std::int32_t>(options_.seed),
                                static_cast<std::int32_t>(options_.seed >> 32), 0, 0};
  generator_ = Variable("generator", {4}, std::span<const std::int32_t>(seed));
  state_.add("adam", adam_.state());
  state_.add("generator", generator_);
  if (options_.normalise_observations) {
    observation_moments_ = moments("moments", options_.observations);
    fresh_ = Variable(kFresh, {brains}, std::vector<float>(static_cast<std::size_t>(brains), 1.0f));
    state_.add(kFresh, fresh_);
  }
  if (options_.normalise_rewards) return_moments_ = moments("returns", 1);

  advantage_ = work("advantage", {all});
  value_target_ = work("value target", {all});
  if (options_.clip_values) value_ = work("value", {all});
  order_ = work("order", {brains, options_.epochs * options_.steps}, DType::int32);
  turn_ = work("turn", {1}, DType::int32);
  sums_ = work("losses", {brains});
  if (options_.max_divergence > 0) halted_ = work("halted", {brains});
}

Variable RolloutPpo::work(const std::string& name, const Shape& shape, DType dtype) {
  work_.push_back(Variable::zeros(name, shape, dtype));
  return work_.back();
}

// ---- moments ----

RolloutPpo::Moments RolloutPpo::moments(const std::string& name, std::int64_t extent) {
  const std::int64_t brains = options_.brains;
  Moments made;
  made.mean = Variable::zeros(name + ".mean", {brains, 1, extent});
  made.variance = Variable(name + ".variance", {brains, 1, extent},
                           std::vector<float>(static_cast<std::size_t>(brains * extent), 1.0f));
  // Almost no weight, but no division by zero.
  made.count =
      Variable(name + ".count", {brains, 1, 1}, std::vector<float>(static_cast<std::size_t>(brains), 1e-4f));
  state_.add(name + ".mean", made.mean);
  state_.add(name + ".variance", made.variance);
  state_.add(name + ".count", made.count);
  return made;
}

// Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979.
RolloutPpo::MomentValues RolloutPpo::grown(const Moments& moments, const Tensor& rows, const Tensor& active) {
  const Tensor fresh_mean = mean(rows, {1}, true), fresh_variance = variance(rows, {1}, true, 0);
  const Tensor old_mean = moments.mean.value(), old_variance = moments.variance.value(),
               old_count = moments.count.value();
  const Tensor rows_count(static_cast<double>(rows.extent(1)));
  const Tensor total = old_count + rows_count, share = rows_count / total, apart = fresh_mean - old_mean;
  const Tensor grows =
      logical_and(beside(active), logical_and(is_finite(fresh_mean), is_finite(fresh_variance)));
  MomentValues values;
  values.mean = where(grows, old_mean + apart * share, old_mean);
  values.variance = where(
      grows, old_variance * (1.0f - share) + fresh_variance * share + square(apart) * share * (1.0f - share),
      old_variance);
  // Bounded, so that the moments follow a game that changes.
  values.count = where(beside(active), minimum(total, Tensor(1e6)), old_count);
  return values;
}

void RolloutPpo::assign(const Moments& moments, const MomentValues& values, std::vector<Update>& updates) {
  updates.push_back(Update::assign(moments.mean, values.mean));
  updates.push_back(Update::assign(moments.variance, values.variance));
  updates.push_back(Update::assign(moments.count, values.count));
}

Tensor RolloutPpo::deviation() const {
  return maximum(sqrt(observation_moments_.variance.value()), Tensor(kLeastDeviation));
}

// y = W x + b = (W s) ((x - m) / s) + (b + W m).
void RolloutPpo::unfold(const RolloutNetwork& network, const MomentValues& moments, const Tensor& active,
                        std::vector<Update>& updates) const {
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
  const Tensor scale = deviation(), centre = observation_moments_.mean.value();
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

Result<ProgramSequence> RolloutPpo::update(const Tensor& samples, const Tensor& filled,
                                           const RolloutView& view) const {
  const Tensor active = greater(filled, 0);
  ProgramSequence sequence;
  sequence.name = "ppo";
  IMPRINT_ASSIGN(ProgramDescription step, minibatch_step(samples, active, view));
  sequence.parts = {
      {prepare(view(samples), active), 1}, {std::move(step), minibatches()}, {publish(active), 1}};
  sequence.own = work_;
  for (const Parameters& own : {state_, learned_.parameters()})
    for (const Parameter& parameter : own) sequence.own.push_back(parameter.variable);
  return sequence;
}

ActionDistribution RolloutPpo::policy(const RolloutNetwork& network, const Tensor& observation,
                                      const Tensor& goal, const Tensor& mask) const {
  const std::int64_t rows = observation.extent(0) * observation.extent(1);
  Tensor log_deviation;
  if (const std::int64_t numbers = options_.action.continuous; numbers > 0)
    log_deviation = reshape(
        expand(network.log_deviation.value(), {observation.extent(0), observation.extent(1), numbers}),
        {rows, numbers});
  return {options_.action, reshape(network.outputs(observation, goal), {rows, options_.action.outputs()}),
          log_deviation, mask};
}

Tensor RolloutPpo::values(const RolloutNetwork& network, const Tensor& observation, const Tensor& goal) {
  return squeeze(network.outputs(observation, goal), 2);
}

Tensor RolloutPpo::scaled_rewards(const RolloutRows& rollout, const Tensor& active,
                                  std::vector<Update>& updates) const {
  if (!options_.normalise_rewards) return rollout.reward;
  const Tensor returned =
      linear_recurrence(rollout.reward, Tensor(options_.discount) * (1.0f - rollout.begins), 1);
  const MomentValues moments = grown(return_moments_, unsqueeze(returned, 2), active);
  assign(return_moments_, moments, updates);
  // Scaled, not shifted: the sign of a reward is the game's choice.
  return clamp(rollout.reward / sqrt(squeeze(moments.variance, 2) + Tensor(1e-8)), -10, 10);
}

// Advantages of one deviation. Where rewards are normalised, advantages that hardly differ are noise: they
// stay small, so that a policy does not drift before there is anything to learn.
Tensor RolloutPpo::standard(const Tensor& advantage) const {
  constexpr double kLeastSpread = 0.1;
  if (!options_.normalise_rewards || advantage.extent(1) == 1) return standardised(advantage);
  const Tensor spread = maximum(sqrt(variance(advantage, {-1}, true)), Tensor(kLeastSpread));
  return (advantage - mean(advantage, {-1}, true)) / spread;
}

ProgramDescription RolloutPpo::prepare(const RolloutRows& rollout, const Tensor& active) const {
  const std::int64_t brains = options_.brains, steps = options_.steps, epochs = options_.epochs;
  ProgramDescription program{.name = "prepare"};
  const Tensor value = values(acting_.critic, rollout.observation, rollout.goal);
  const Tensor next = values(acting_.critic, rollout.next_observation, rollout.next_goal) * rollout.continues;
  Trajectories trajectories;
  trajectories.reward = by_time(scaled_rewards(rollout, active, program.updates));
  trajectories.value = by_time(value);
  trajectories.next_value = by_time(next);
  // A row continues in the next one unless that one begins a trajectory.
  trajectories.continues =
      by_time(1.0f - concat({narrow(rollout.begins, 1, 1, steps - 1), ones({brains, 1})}, 1));
  const Advantages found = generalised_advantages(
      trajectories, {.discount = options_.discount, .decay = options_.advantage_decay});
  const auto keep = [&](const Variable& variable, const Tensor& content) {
    program.updates.push_back(Update::assign(variable, content));
  };
  keep(advantage_, reshape(by_time(found.advantage), {brains * steps}));
  keep(value_target_, reshape(by_time(found.value_target), {brains * steps}));
  if (options_.clip_values) keep(value_, reshape(value, {brains * steps}));
  keep(order_,
       reshape(random_permutation(generator_.value(), {brains, epochs, steps}, 0), {brains, epochs * steps}));
  keep(turn_, zeros({1}, DType::int32));
  keep(sums_, zeros({brains}));
  if (options_.max_divergence > 0) keep(halted_, zeros({brains}));
  keep(generator_, generator_next(generator_.value()));
  if (options_.normalise_observations) {
    const MomentValues moments = grown(observation_moments_, rollout.observation, active);
    assign(observation_moments_, moments, program.updates);
    unfold(learned_.policy, moments, active, program.updates);
    unfold(learned_.critic, moments, active, program.updates);
  }
  return program;
}

Result<ProgramDescription> RolloutPpo::minibatch_step(const Tensor& samples, const Tensor& has_rollout,
                                                      const RolloutView& view) const {
  const std::int64_t brains = options_.brains, steps = options_.steps, count = options_.minibatch,
                     rows = brains * count;
  const Shape by_brain{brains, count};
  const Tensor places = turn_.value() * static_cast<int>(count) + arange(count);
  const Tensor chosen =
      reshape(take(order_.value(), 1, places) + iota(by_brain, 0) * static_cast<int>(steps), {rows});
  const RolloutRows batch = view(take(samples, 0, chosen));
  const auto of_chosen = [&](const Variable& variable) { return take(variable.value(), 0, chosen); };

  Tensor observation = batch.observation;
  if (options_.normalise_observations)
    observation = (observation - observation_moments_.mean.value()) / deviation();
  const ActionDistribution distribution = policy(learned_.policy, observation, batch.goal, batch.mask);
  const Tensor value = values(learned_.critic, observation, batch.goal);
  PpoEvaluation now;
  now.log_probability = distribution.log_probability({batch.discrete, batch.continuous});
  now.entropy = distribution.entropy();
  now.value = reshape(value, {rows});
  PpoBatch before;
  before.log_probability = reshape(batch.log_probability, {rows});
  before.advantage = reshape(standard(reshape(of_chosen(advantage_), by_brain)), {rows});
  before.value_target = of_chosen(value_target_);
  if (options_.clip_values) before.value = of_chosen(value_);
  const PpoLoss loss = ppo_loss(now, before,
                                {.clip_range = Tensor(options_.clip_range),
                                 .entropy_coefficient = options_.entropy_coefficient,
                                 .value_coefficient = options_.value_coefficient,
                                 .clip_value = options_.clip_values});

  // The loss is a mean over the rows of all brains, which share no weights. Times their number it is the sum
  // of each brain's own loss.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw,
                 gradients(loss.total * static_cast<float>(brains), adam_.parameters().values()));
  IMPRINT_ASSIGN(const ClippedGradients clipped,
                 clip_by_global_norm(raw, options_.max_gradient_norm, brains));
  const Tensor finite = is_finite(clipped.norm);
  Tensor active = logical_and(has_rollout, finite);
  ProgramDescription program{.name = "minibatch"};
  if (options_.max_divergence > 0) {
    const Tensor log_ratio = now.log_probability - before.log_probability;
    const Tensor divergence = mean(reshape(exp(log_ratio) - 1.0f - log_ratio, by_brain), {1});
    const Tensor halted =
        maximum(halted_.value(), cast(greater(divergence, Tensor(options_.max_divergence)), DType::float32));
    program.updates.push_back(Update::assign(halted_, halted));
    active = logical_and(active, less(halted, 0.5f));
  }
  IMPRINT_ASSIGN(std::vector<Update> steps_taken,
                 adam_.step(clipped.gradients, Tensor(options_.learning_rate), cast(active, DType::float32)));
  program.updates.insert(program.updates.end(), steps_taken.begin(), steps_taken.end());
  const Tensor error = mean(square(value - reshape(before.value_target, by_brain)), {1});
  program.updates.push_back(Update::assign(sums_, sums_.value() + where(finite, error, clipped.norm)));
  program.updates.push_back(Update::assign(turn_, turn_.value() + 1));
  return program;
}

ProgramDescription RolloutPpo::publish(const Tensor& active) const {
  ProgramDescription program{.name = "publish"};
  if (options_.normalise_observations) {
    fold(learned_.policy, acting_.policy, active, program.updates);
    fold(learned_.critic, acting_.critic, active, program.updates);
    program.updates.push_back(
        Update::assign(fresh_, where(active, zeros({options_.brains}), fresh_.value())));
  }
  const Parameters target = acting_.parameters(), source = learned_.parameters();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto is_folded = [&](const Update& update) {
      return update.target.state() == target[i].variable.state();
    };
    if (std::ranges::none_of(program.updates, is_folded))
      program.updates.push_back(Update::assign(target[i].variable, source[i].value()));
  }
  program.outputs = {sums_.value() / static_cast<float>(minibatches())};
  return program;
}

}  // namespace imprint::nn

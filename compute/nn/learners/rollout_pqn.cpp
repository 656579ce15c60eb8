#include "compute/nn/learners/rollout_pqn.h"

#include <utility>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/learners/advantage.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

constexpr double kNeverChosen = -1e30;  // below every value that a network can hold
// Returns that differ by less are all equal, and are learned as they are.
constexpr double kLeastReturnDeviation = 1e-4;

// [P] as it multiplies [P, rows, columns].
Tensor per_row_and_column(const Tensor& per_brain) { return unsqueeze(unsqueeze(per_brain, 1), 2); }

}  // namespace

RolloutPqn::RolloutPqn(RolloutPqnOptions options, RolloutNetwork acting, RolloutNetwork learned)
    : options_(std::move(options)),
      acting_(std::move(acting)),
      learned_(std::move(learned)),
      radam_(learned_.parameters, {.epsilon = options_.radam_epsilon, .groups = options_.groups}) {
  const std::int64_t brains = options_.groups, all = brains * options_.steps;
  const std::int32_t seed[4] = {static_cast<std::int32_t>(options_.seed),
                                static_cast<std::int32_t>(options_.seed >> 32), 0, 0};
  generator_ = Variable("generator", {4}, std::span<const std::int32_t>(seed));
  state_.add("radam", radam_.state());
  state_.add("generator", generator_);
  if (options_.normalise_rewards) {
    return_moments_ = GroupedMoments("returns", brains, 1);
    state_.add("returns", return_moments_.state());
    scale_ = work("scale", {brains, 1, 1});
  }
  updates_ = Variable::zeros("updates", {brains});
  state_.add("updates", updates_);
  target_ = work("target", {all});
  order_ = work("order", {brains, options_.epochs * options_.steps}, DType::int32);
  turn_ = work("turn", {1}, DType::int32);
  taken_ = work("taken", {brains});
  sums_ = work("sums", {brains, kPqnMetrics});
}

Variable RolloutPqn::work(const std::string& name, const Shape& shape, DType dtype) {
  const Variable made = Variable::zeros(name, shape, dtype);
  work_.add(name, made);
  return made;
}

std::uint32_t RolloutPqn::minibatches() const {
  return static_cast<std::uint32_t>(options_.epochs * (options_.steps / options_.minibatch));
}

Tensor RolloutPqn::rate() const {
  Tensor rate(options_.learning_rate);
  if (options_.half_life_updates > 0)
    rate = rate * maximum(1.0f / (updates_.value() * Tensor(1.0 / options_.half_life_updates) + 1.0f),
                          Tensor(kLeastRate));
  if (options_.rate_updates > 0)
    rate = rate *
           maximum(1.0f - updates_.value() * Tensor(1.0 / static_cast<double>(options_.rate_updates)), 0.0f);
  return rate;
}

Tensor RolloutPqn::in_rollouts(const Tensor& rows) const {
  const std::int64_t brains = options_.groups, count = rows.extent(1);
  return reshape(rows + iota({brains, count}, 0) * static_cast<int>(options_.steps), {brains * count});
}

Tensor RolloutPqn::lambda_returns(const RolloutRows& rollout) const {
  const Tensor rated = acting_.outputs(rollout.next_observation, rollout.next_goal);
  const Tensor best = max(where(reshape(rollout.mask, rated.shape()), rated, kNeverChosen), {2});
  // A choice rather than a product: after a terminal state nothing is allowed, and `best` is not a value.
  const Tensor next = where(greater(rollout.continues, 0.0f), best * rollout.continues, zeros_like(best));
  const Tensor traced = Tensor(options_.trace_decay) * rollout.follows;
  return linear_recurrence(rollout.reward + Tensor(options_.discount) * next * (1.0f - traced),
                           Tensor(options_.discount) * traced, 1, true);
}

ProgramDescription RolloutPqn::prepare(const RolloutRows& rollout, const Tensor& active) const {
  const std::int64_t brains = options_.groups, steps = options_.steps;
  ProgramDescription program{.name = "prepare"};
  const auto keep = [&](const Variable& variable, const Tensor& content) {
    program.updates.push_back(Update::assign(variable, content));
  };
  Tensor target = lambda_returns(rollout);
  if (options_.normalise_rewards) {
    const Tensor returns = discounted_returns(rollout.reward, rollout.follows, options_.discount);
    const GroupedMoments::Values moments =
        return_moments_.grown(GroupedMoments::of(unsqueeze(returns, 2)), active);
    return_moments_.assign(moments, program.updates);
    const Tensor deviation = sqrt(moments.variance);
    const Tensor scale = where(greater(deviation, Tensor(kLeastReturnDeviation)), deviation, 1.0f);
    keep(scale_, scale);
    target = target / squeeze(scale, 2);
    for (std::size_t i = 0; i < learned_.parameters.size(); ++i)
      if (is_last_layer(i)) keep(learned_.parameters[i].variable, acting_.parameters[i].value() / scale);
  }
  keep(target_, reshape(target, {brains * steps}));
  keep(order_, reshape(random_permutation(generator_.value(), {brains, options_.epochs, steps}, 0),
                       {brains, options_.epochs * steps}));
  keep(turn_, zeros({1}, DType::int32));
  keep(taken_, zeros({brains}));
  keep(sums_, zeros({brains, kPqnMetrics}));
  keep(generator_, generator_next(generator_.value()));
  return program;
}

Result<ProgramDescription> RolloutPqn::minibatch(const RolloutSource& source, const Tensor& active) const {
  const std::int64_t brains = options_.groups, rows = options_.minibatch;
  const Tensor places = turn_.value() * static_cast<int>(rows) + arange(rows);
  const Tensor chosen = in_rollouts(take(order_.value(), 1, places));
  const RolloutRows batch = source.some(chosen);
  const Tensor rated = learned_.outputs(batch.observation, batch.goal);
  const Tensor choice = reshape(batch.discrete, {brains, rows});
  const Tensor value = sum(rated * one_hot(choice, rated.extent(2)), {2});
  const Tensor distance = value - reshape(take(target_.value(), 0, chosen), {brains, rows});
  const Tensor loss = mean(square(distance) * 0.5f, {1});

  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> slopes, gradients(sum(loss), radam_.parameters().values()));
  IMPRINT_ASSIGN(const ClippedGradients clipped,
                 clip_by_global_norm(slopes, options_.max_gradient_norm, options_.groups));
  const Tensor norm = reshape(clipped.norm, {brains});
  const Tensor learns = cast(logical_and(active, is_finite(norm)), DType::float32);
  ProgramDescription program{.name = "minibatch"};
  IMPRINT_ASSIGN(program.updates, radam_.step(clipped.gradients, rate(), learns));
  const Tensor scale = options_.normalise_rewards ? reshape(scale_.value(), {brains}) : ones({brains});
  const Tensor metrics = stack(
      {loss, mean(abs(distance), {1}) * scale, min(value, {1}) * scale, max(value, {1}) * scale, norm}, 1);
  program.updates.push_back(Update::assign(sums_, sums_.value() + metrics));
  program.updates.push_back(Update::assign(taken_, taken_.value() + learns));
  program.updates.push_back(Update::assign(turn_, turn_.value() + 1));
  return program;
}

ProgramDescription RolloutPqn::publish(const Tensor& active) const {
  ProgramDescription program{.name = "publish"};
  program.updates.push_back(Update::assign(updates_, updates_.value() + cast(active, DType::float32)));
  // Brains that took no step keep their bits: a scale there and back would round.
  const Tensor changed = per_row_and_column(greater(taken_.value(), 0.0f));
  for (std::size_t i = 0; i < acting_.parameters.size(); ++i) {
    const Variable& target = acting_.parameters[i].variable;
    Tensor learned = learned_.parameters[i].value();
    if (options_.normalise_rewards && is_last_layer(i)) learned = learned * scale_.value();
    program.updates.push_back(Update::assign(target, where(changed, learned, target.value())));
  }
  program.outputs = {(sums_.value() * Tensor(1.0 / static_cast<double>(minibatches()))).named("metrics")};
  return program;
}

Result<ProgramSequence> RolloutPqn::update(const RolloutSource& source, const Tensor& filled) const {
  const Tensor active = greater(filled, 0);
  IMPRINT_ASSIGN(ProgramDescription one, minibatch(source, active));
  ProgramSequence sequence;
  sequence.parts = {
      {prepare(source.all(), active), 1}, {std::move(one), minibatches()}, {publish(active), 1}};
  sequence.name = "update";
  for (const Parameters* own : {&work_, &state_, &learned_.parameters})
    for (const Parameter& parameter : *own) sequence.own.push_back(parameter.variable);
  return sequence;
}

}  // namespace imprint::nn

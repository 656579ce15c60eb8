// The learning half of Ppo: the programs before, for and after the minibatches of an update.

#include "compute/graph/autodiff.h"
#include "compute/nn/advantage.h"
#include "compute/nn/ppo.h"
#include "compute/nn/ppo_loss.h"

namespace imprint::nn {
namespace {

Tensor scalar(const Tensor& one) { return reshape(one, {}); }

}  // namespace

Result<ProgramSequence> Ppo::update() const {
  ProgramSequence sequence{.name = options_.name + ".update"};
  IMPRINT_ASSIGN(ProgramDescription step, minibatch_step());
  IMPRINT_ASSIGN(ProgramDescription last, publish());
  sequence.parts.push_back({prepare(), 1});
  sequence.parts.push_back({std::move(step), static_cast<std::uint32_t>(minibatches())});
  sequence.parts.push_back({std::move(last), 1});
  for (const Parameters* own : {&learner_.parameters, &adam_.state()})
    for (const Parameter& parameter : *own) sequence.own.push_back(parameter.variable);
  for (const Variable& variable : {work_.first, work_.order, work_.advantage, work_.value_target, work_.turn,
                                   work_.sums, work_.halted, learner_generator_})
    if (variable.state()) sequence.own.push_back(variable);
  return sequence;
}

// The advantages of the rollout, and the order in which minibatches take its samples. Each minibatch's
// advantages are standardised here and stored in that order. The rows of a minibatch are then independent
// until their gradients are added.
ProgramDescription Ppo::prepare() const {
  const std::int64_t steps = options_.steps, epochs = options_.epochs;
  const Tensor first = work_.first.value();
  const auto rollout = [&](const Variable& memory) { return take(memory.value(), 0, first + arange(steps)); };
  const Tensor values = rollout(memory_.value), continues = rollout(memory_.continues);
  // The states that followed the actions, evaluated at once.
  Tensor next =
      take(memory_.observation.value(), 0, remainder(first + 1 + arange(steps), static_cast<int>(2 * steps)));
  if (memory_.ending.state())
    next = where(expand(unsqueeze(continues, 2), next.shape()) > 0.0f, next, rollout(memory_.ending));
  const Tensor next_values =
      reshape(actor_.value_of(reshape(next, {samples(), options_.observations})), {steps, options_.agents}) *
      rollout(memory_.counts);
  const Advantages result =
      generalised_advantages({rollout(memory_.reward), values, next_values, continues},
                             {.discount = options_.discount, .decay = options_.advantage_decay});

  const Tensor order =
      reshape(random_permutation(learner_generator_.value(), {epochs, samples()}, 0), {epochs * samples()});
  Tensor advantage = take(reshape(result.advantage, {samples()}), 0, order);
  if (options_.standardise_advantages)
    advantage =
        reshape(standardised(reshape(advantage, {minibatches(), options_.minibatch})), {epochs * samples()});

  // 1 - variance of the error / variance of the target; 0 where the target is constant. The target's mean is
  // computed from its parts, which are ready earlier.
  const Tensor error = variance(result.advantage, {}, false, 0);
  const Tensor spread = mean(square(result.value_target - (mean(result.advantage) + mean(values))));
  const Tensor explained = where(spread > 0.0f, 1.0f - error / spread, zeros({}));

  ProgramDescription program{.name = "prepare"};
  program.updates = {
      Update::assign(work_.order, order),
      Update::assign(work_.advantage, advantage),
      Update::assign(work_.value_target, reshape(result.value_target, {samples()})),
      Update::assign(work_.turn, zeros({1}, DType::int32)),
      Update::assign(work_.sums, concat({zeros({kPpoMetrics - 1}), reshape(explained, {1})}, 0)),
      Update::assign(learner_generator_, generator_next(learner_generator_.value()))};
  if (work_.halted.state()) program.updates.push_back(Update::assign(work_.halted, zeros({1})));
  return program;
}

Result<ProgramDescription> Ppo::minibatch_step() const {
  const std::int64_t rows = 2 * options_.steps * options_.agents;
  const Tensor learning_rate = input("learning_rate", {}), clip_range = input("clip_range", {});
  const Tensor places =
      work_.turn.value() * static_cast<int>(options_.minibatch) + arange(options_.minibatch);
  const Tensor chosen = take(work_.order.value(), 0, places);
  const Tensor in_memory = work_.first.value() * static_cast<int>(options_.agents) + chosen;
  const auto remembered = [&](const Variable& memory) {
    if (!memory.state()) return Tensor();
    Shape flat{rows};
    for (int axis = 2; axis < memory.shape().rank(); ++axis) flat.append(memory.shape()[axis]);
    return take(reshape(memory.value(), flat), 0, in_memory);
  };

  const Tensor observation = remembered(memory_.observation);
  const ActionDistribution policy = distribution(learner_, observation, remembered(memory_.mask));
  PpoEvaluation now;
  now.log_probability =
      policy.log_probability({remembered(memory_.discrete), remembered(memory_.continuous)});
  now.entropy = policy.entropy();
  now.value = learner_.value_of(observation);
  PpoBatch batch;
  batch.log_probability = remembered(memory_.log_probability);
  batch.advantage = take(work_.advantage.value(), 0, places);
  batch.value_target = take(work_.value_target.value(), 0, chosen);
  if (options_.clip_values) batch.value = remembered(memory_.value);
  const PpoLoss loss = ppo_loss(now, batch,
                                {.clip_range = clip_range,
                                 .entropy_coefficient = options_.entropy_coefficient,
                                 .value_coefficient = options_.value_coefficient,
                                 .clip_value = options_.clip_values});

  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(loss.total, learner_.parameters.values()));
  IMPRINT_ASSIGN(const ClippedGradients clipped, clip_by_global_norm(raw, options_.max_gradient_norm));
  ProgramDescription program{.name = "minibatch", .inputs = {learning_rate, clip_range}};
  Tensor active = cast(is_finite(clipped.norm), DType::float32);
  if (work_.halted.state()) {
    const Tensor halted = maximum(scalar(work_.halted.value()),
                                  cast(loss.divergence > Tensor(options_.max_divergence), DType::float32));
    program.updates.push_back(Update::assign(work_.halted, reshape(halted, {1})));
    active = active * (1.0f - halted);
  }
  IMPRINT_ASSIGN(std::vector<Update> steps, adam_.step(clipped.gradients, learning_rate, active));
  program.updates.insert(program.updates.end(), steps.begin(), steps.end());
  const Tensor metrics = stack(
      {loss.policy, loss.value, loss.entropy, loss.divergence, loss.clipped, clipped.norm, zeros({})}, 0);
  program.updates.push_back(Update::assign(work_.sums, work_.sums.value() + metrics));
  program.updates.push_back(Update::assign(work_.turn, work_.turn.value() + 1));
  return program;
}

// Gives the actors the new weights, and the next rollout the other half of the memory.
Result<ProgramDescription> Ppo::publish() const {
  ProgramDescription program{.name = "publish"};
  IMPRINT_ASSIGN(program.updates, copy_parameters(actor_.parameters, learner_.parameters));
  const int steps = static_cast<int>(options_.steps);
  program.updates.push_back(Update::assign(work_.first, remainder(work_.first.value() + steps, 2 * steps)));
  const auto turns = static_cast<float>(minibatches());
  const Tensor share = concat({full({kPpoMetrics - 1}, 1.0 / turns), ones({1})}, 0);
  program.outputs = {(work_.sums.value() * share).named("metrics")};
  return program;
}

}  // namespace imprint::nn

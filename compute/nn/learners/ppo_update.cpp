// The learning half of Ppo: RolloutPpo over the memory.

#include "compute/nn/learners/ppo.h"

namespace imprint::nn {

RolloutPpo Ppo::make_update() const {
  // Rows are [1, n, ...] for RolloutPpo and [n, ...] for the networks.
  const auto adapted = [](const Sequential& network, const Variable& log_deviation) {
    return RolloutNetwork{[network](const Tensor& observation, const Tensor&) {
                            const Tensor outputs = network(squeeze(observation, 0));
                            return unsqueeze(outputs, 0);
                          },
                          network.parameters(), log_deviation};
  };
  const auto both = [&](const ActorCritic& of) {
    PolicyAndCritic made{adapted(of.policy, of.log_deviation), adapted(of.value, {}), of.parameters};
    if (!options_.trunk) return made;
    made.together = [of](const RolloutRows&, const Tensor& observation) {
      const Tensor features = of.trunk(squeeze(observation, 0));
      return RolloutOutputs{unsqueeze(of.policy(features), 0), unsqueeze(squeeze(of.value(features), 1), 0)};
    };
    made.values = [of](const RolloutRows& rollout) {
      return RolloutValues{rollout.value, unsqueeze(of.value_of(squeeze(rollout.next_observation, 0)), 0)};
    };
    return made;
  };
  RolloutPpoOptions options;
  options.name = options_.name + ".update";
  options.groups = 0;
  options.steps = samples();
  options.lanes = options_.agents;
  options.minibatch = options_.minibatch;
  options.epochs = options_.epochs;
  options.observations = options_.observations;
  options.action = options_.action;
  options.learning_rate = learning_rate_;
  options.clip_range = clip_range_;
  options.discount = options_.discount;
  options.advantage_decay = options_.advantage_decay;
  options.entropy_coefficient = options_.entropy_coefficient;
  options.value_coefficient = options_.value_coefficient;
  options.max_gradient_norm = options_.max_gradient_norm;
  options.adam_epsilon = options_.adam_epsilon;
  options.max_divergence = options_.max_divergence;
  options.clip_values = options_.clip_values;
  options.standardise_advantages = options_.standardise_advantages;
  options.seed = options_.seed ^ (std::uint64_t{2} << 32);  // other numbers than the actors'
  options.process_count = options_.process_count;
  options.process_index = options_.process_index;
  return {options, both(actor_), both(learner_)};
}

Result<ProgramSequence> Ppo::update() const {
  IMPRINT_ASSIGN(ProgramSequence sequence,
                 update_.update({[this] { return whole_rollout(); },
                                 [this](const Tensor& chosen) { return rows(chosen); }}));
  sequence.name = options_.name + ".update";
  // Inputs of the minibatch, or with process_count of its gradient and its step.
  const std::size_t last_minibatch = sequence.parts.size() - 2;
  for (std::size_t part = options_.process_count > 1 ? last_minibatch - 1 : last_minibatch;
       part <= last_minibatch; ++part)
    sequence.parts[part].description.inputs = {learning_rate_, clip_range_};
  ProgramDescription& last = sequence.parts.back().description;
  last.outputs = {reshape(last.outputs[0], {kPpoMetrics}).named("metrics")};
  // The next rollout is in the other half of the memory.
  const int steps = static_cast<int>(options_.steps);
  last.updates.push_back(Update::assign(first_, remainder(first_.value() + steps, 2 * steps)));
  sequence.own.push_back(first_);
  return sequence;
}

RolloutRows Ppo::whole_rollout() const {
  const std::int64_t steps = options_.steps;
  const Tensor first = first_.value();
  const auto remembered = [&](const Variable& memory) {
    return take(memory.value(), 0, first + arange(steps));
  };
  const auto flat = [&](const Tensor& by_time) { return reshape(by_time, {1, samples()}); };
  const Tensor continues = remembered(memory_.continues);
  // The states that followed the actions, evaluated at once.
  Tensor next =
      take(memory_.observation.value(), 0, remainder(first + 1 + arange(steps), static_cast<int>(2 * steps)));
  if (memory_.ending.state())
    next = where(expand(unsqueeze(continues, 2), next.shape()) > 0.0f, next, remembered(memory_.ending));
  RolloutRows rollout;
  rollout.next_observation = reshape(next, {1, samples(), options_.observations});
  rollout.value = flat(remembered(memory_.value));
  rollout.reward = flat(remembered(memory_.reward));
  rollout.follows = flat(continues);
  rollout.continues = flat(remembered(memory_.counts));
  return rollout;
}

RolloutRows Ppo::rows(const Tensor& chosen) const {
  const Tensor in_memory = first_.value() * static_cast<int>(options_.agents) + chosen;
  const auto remembered = [&](const Variable& memory) {
    if (!memory.state()) return Tensor();
    Shape flat{2 * samples()};
    for (int axis = 2; axis < memory.shape().rank(); ++axis) flat.append(memory.shape()[axis]);
    return take(reshape(memory.value(), flat), 0, in_memory);
  };
  RolloutRows found;
  found.observation = unsqueeze(remembered(memory_.observation), 0);
  found.mask = remembered(memory_.mask);
  found.discrete = remembered(memory_.discrete);
  found.continuous = remembered(memory_.continuous);
  found.log_probability = unsqueeze(remembered(memory_.log_probability), 0);
  return found;
}

}  // namespace imprint::nn

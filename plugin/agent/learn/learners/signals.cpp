#include "plugin/agent/learn/learners/signals.h"

#include <utility>

#include "plugin/agent/learn/samples/demonstration_memory.h"

namespace imprint::agent {

nn::ActionSpace action_space(const BrainSpec& spec) {
  nn::ActionSpace space;
  for (const std::uint32_t size : spec.action.branch_sizes) space.branches.push_back(size);
  space.continuous = spec.action.continuous_count;
  return space;
}

DemonstrationDraws::DemonstrationDraws(const BrainSpec& spec, const LearnInputs& inputs)
    : spec_(spec),
      rows_(inputs.demonstrations),
      filled_(inputs.demonstration_filled),
      age_(Variable::zeros("demonstration_age", {spec.brain_count})) {}

Tensor DemonstrationDraws::there() const { return greater(filled_, 0); }

Minibatch DemonstrationDraws::draw(const Tensor& generator, std::int64_t n, std::uint32_t stream) const {
  const std::int64_t brains = spec_.brain_count;
  const Shape wanted{brains, n};
  const Tensor own = random_integers(generator, wanted, reshape(filled_, {brains, 1}), stream);
  return {take(rows_, 0, own + iota(wanted, 0) * static_cast<int>(spec_.demonstration_capacity)),
          demonstration_layout(spec_)};
}

Tensor DemonstrationDraws::loss(const Minibatch& batch, const Tensor& losses) const {
  const Tensor weight = batch.column(batch.layout.weight);
  const Tensor mean = sum(losses * weight, {1}) / maximum(sum(weight, {1}), 1e-6f);
  Tensor strength = zeros_like(mean) + spec_.demonstration_strength;
  if (spec_.demonstration_half_life > 0)
    strength = exp(age_.value() * (-0.6931472f / static_cast<float>(spec_.demonstration_half_life))) *
               spec_.demonstration_strength;
  return where(there(), mean * strength, zeros_like(mean));
}

std::vector<Update> DemonstrationDraws::count(const Tensor& learns) const {
  const Tensor counted = cast(logical_and(learns, there()), DType::float32);
  return {Update::assign(age_, age_.value() + counted)};
}

std::shared_ptr<const nn::RewardSignals> make_signals(const BrainSpec& spec) {
  if (!spec.has_signals()) return nullptr;
  nn::SignalShape shape;
  shape.brains = spec.brain_count;
  shape.observations = spec.observation.width();
  shape.hidden = spec.signal_size;
  shape.action = action_space(spec);
  shape.seed = spec.seed;
  const auto discount = [&](float own) { return double{own > 0 ? own : spec.discount}; };
  std::vector<nn::SignalTerm> terms;
  if (spec.curiosity_strength > 0) {
    shape.name = "curiosity";
    terms.push_back({shape.name,
                     spec.curiosity == Curiosity::novelty ? nn::novelty(shape) : nn::surprise(shape),
                     double{spec.curiosity_strength}, discount(spec.curiosity_discount)});
  }
  if (spec.imitation_strength > 0) {
    shape.name = "imitation";
    terms.push_back({shape.name, nn::imitation(shape), double{spec.imitation_strength},
                     discount(spec.imitation_discount)});
  }
  nn::RewardSignalsOptions options;
  options.brains = spec.brain_count;
  options.observations = spec.observation.width();
  options.learning_rate = double{spec.signal_rate};
  options.reward_strength = double{spec.reward_strength};
  return std::make_shared<nn::RewardSignals>(options, std::move(terms));
}

namespace {

Tensor action_of(const BrainSpec& spec, const Minibatch& batch) {
  const SampleLayout& layout = batch.layout;
  const auto branches = static_cast<std::uint32_t>(spec.action.branch_sizes.size());
  Tensor discrete, continuous;
  if (branches > 0) discrete = cast(batch.columns(layout.branches, branches), DType::int32);
  if (spec.action.continuous_count > 0)
    continuous = batch.columns(layout.continuous, spec.action.continuous_count);
  return nn::action_numbers(action_space(spec), discrete, continuous);
}

}  // namespace

nn::SignalRows signal_rows(const BrainSpec& spec, const Minibatch& batch) {
  const std::uint32_t width = spec.observation.width();
  return {batch.columns(batch.layout.observation, width), batch.columns(batch.layout.next_observation, width),
          greater(batch.column(batch.layout.continues), 0.0f), action_of(spec, batch)};
}

nn::SignalRows demonstration_signal_rows(const BrainSpec& spec, const Minibatch& shown) {
  return {shown.columns(shown.layout.observation, spec.observation.width()), {}, {}, action_of(spec, shown)};
}

}  // namespace imprint::agent

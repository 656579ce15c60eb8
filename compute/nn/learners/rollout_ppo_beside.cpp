// RolloutPpo beside the game's rewards: signals of its own, and demonstrations.

#include "compute/nn/learners/advantage.h"
#include "compute/nn/learners/rollout_ppo.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

void RolloutPpo::make_beside() {
  if (!has_signals() && !beside_.loss) return;
  constexpr std::int32_t kApart = 0x5163;  // another generator than the order's
  const std::int32_t seed[4] = {static_cast<std::int32_t>(options_.seed) ^ kApart,
                                static_cast<std::int32_t>(options_.seed >> 32), 0, 0};
  draws_ = Variable(named("draws"), {4}, std::span<const std::int32_t>(seed));
  state_.add("draws", draws_);
  state_.add("", beside_.state);
  if (!has_signals()) return;
  state_.add("signals", beside_.reward_signals->state());
  for (const SignalTerm& term : beside_.reward_signals->terms())
    signal_targets_.push_back(work("target." + term.name, {options_.brains() * options_.steps}));
}

Tensor RolloutPpo::learns(const Tensor& active) const {
  return beside_.loss && !is_empty(active) ? logical_or(active, beside_.has_demonstrations) : active;
}

Tensor RolloutPpo::normalised(const Tensor& observation) const {
  if (!options_.normalise_observations) return observation;
  return (observation - observation_moments_.now().mean) / deviation();
}

SignalRows RolloutPpo::signal_rows(const RolloutRows& rows) const {
  const std::int64_t brains = options_.brains(), count = rows.observation.extent(1);
  const auto by_brain = [&](const Tensor& given) {
    return is_empty(given) ? given : reshape(given, {brains, count, given.extent(1)});
  };
  return {rows.observation, rows.next_observation, greater(rows.continues, 0.0f),
          action_numbers(options_.action, by_brain(rows.discrete), by_brain(rows.continuous))};
}

Tensor RolloutPpo::with_signals(const Tensor& advantage, const RolloutRows& rollout,
                                const RolloutValues& valued, const Tensor& active,
                                std::vector<Update>& updates) const {
  const RewardSignals& signals = *beside_.reward_signals;
  const std::int64_t all = options_.brains() * options_.steps;
  const GroupedMoments::Values seen = signals.watch(rollout.observation, active, updates);
  const SignalRows rows = RewardSignals::scaled(signal_rows(rollout), seen);
  Tensor total = advantage * Tensor(signals.reward_strength());
  for (std::size_t i = 0; i < signals.terms().size(); ++i) {
    const SignalTerm& term = signals.terms()[i];
    const auto value = [&](const Tensor& values) {
      return squeeze(narrow(values, 2, static_cast<std::int64_t>(i), 1), 2);
    };
    const auto sums = [&](const Tensor& reward) {
      const Tensor kept = narrow(rollout.follows, 1, 0, options_.steps - 1);
      return linear_recurrence(reward,
                               Tensor(term.discount) * concat({zeros({options_.brains(), 1}), kept}, 1), 1);
    };
    const Tensor reward = signals.reward_in_rollout(i, rows, sums, active, updates);
    const Tensor own = value(valued.own_signals);
    // Curiosity goes on after an episode: an end is no loss of it.
    const Tensor at_end = term.signal->imitates() ? zeros_like(own) : own;
    const Tensor next =
        where(greater(rollout.continues, 0.0f), value(valued.next_signals) * rollout.continues, at_end);
    const Advantages found =
        generalised_advantages({by_time(reward), by_time(own), by_time(next), by_time(rollout.follows)},
                               {.discount = term.discount, .decay = options_.advantage_decay});
    updates.push_back(Update::assign(signal_targets_[i], reshape(by_brain(found.value_target), {all})));
    total = total + by_brain(found.advantage) * Tensor(term.strength);
  }
  return total;
}

RolloutPpo::MomentValues RolloutPpo::observed(const RolloutRows& rollout, const Tensor& active,
                                              std::vector<Update>& updates) const {
  GroupedMoments::Fresh rows = fresh(rollout.observation, 0);
  Tensor grows = active;
  if (beside_.loss) {
    const GroupedMoments::Fresh shown = GroupedMoments::of(beside_.observations(draws_.value()));
    const Tensor played = unsqueeze(unsqueeze(active, 1), 2);
    rows.mean = where(played, rows.mean, shown.mean);
    rows.variance = where(played, rows.variance, shown.variance);
    grows = logical_or(active, logical_and(beside_.has_demonstrations, greater(fresh_.value(), 0.5f)));
  }
  const MomentValues values = observation_moments_.grown(rows, grows);
  observation_moments_.assign(values, updates);
  return values;
}

Tensor RolloutPpo::signal_loss(const RolloutOutputs& outputs, const Tensor& chosen) const {
  const Shape by_brain{options_.brains(), options_.minibatch};
  Tensor loss = zeros({options_.brains()});
  for (std::size_t i = 0; i < signal_targets_.size(); ++i) {
    const Tensor value = squeeze(narrow(outputs.signal_values, 2, static_cast<std::int64_t>(i), 1), 2);
    const Tensor target = reshape(take(signal_targets_[i].value(), 0, chosen), by_brain);
    loss = loss + mean(square(value - target), {1});
  }
  return loss * Tensor(options_.value_coefficient);
}

Tensor RolloutPpo::shown_loss() const {
  const auto log_probability = [this](const Tensor& observation, const Tensor& goal, const Actions& actions) {
    const Tensor outputs = learned_.policy.outputs(normalised(observation), goal);
    return reshape(distribution(learned_.policy, {}, outputs).log_probability(actions),
                   {observation.extent(0), observation.extent(1)});
  };
  return beside_.loss(log_probability, draws_.value());
}

Result<> RolloutPpo::learn_beside(const RolloutRows& batch, const Tensor& active,
                                  std::vector<Update>& updates) const {
  if (!draws_.ok()) return {};
  updates.push_back(Update::assign(draws_, generator_next(draws_.value())));
  if (beside_.count) {
    const std::vector<Update> counted = beside_.count(learns(active));
    updates.insert(updates.end(), counted.begin(), counted.end());
  }
  if (!has_signals()) return {};
  const RewardSignals& signals = *beside_.reward_signals;
  constexpr std::uint32_t kMix = 32;  // a stream that demonstrations do not draw from
  const GroupedMoments::Values seen = signals.seen();
  SignalRows shown;
  if (signals.imitates())
    shown = RewardSignals::scaled(beside_.rows(draws_.value(), options_.minibatch), seen);
  IMPRINT_ASSIGN(const std::vector<Update> learned,
                 signals.learn(RewardSignals::scaled(signal_rows(batch), seen), shown,
                               beside_.has_demonstrations, active, draws_.value(), kMix));
  updates.insert(updates.end(), learned.begin(), learned.end());
  return {};
}

}  // namespace imprint::nn

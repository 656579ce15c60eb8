#include "plugin/agent/learn/learners/recall.h"

namespace imprint::agent {

Recall::Recall(const BrainSpec& spec, const Variable& change_epsilon, LearnGraph& graph)
    : brains_(spec.brain_count),
      batch_(spec.batch_size),
      capacity_(static_cast<std::int32_t>(spec.replay_capacity)),
      change_epsilon_(change_epsilon) {
  const auto whole = [&](const char* name, std::int32_t most) {
    const Variable made = Variable::zeros(name, {brains_}, DType::int32);
    graph.state.push_back({name, made, 0, most, Merge::none});
    return made;
  };
  const auto number = [&](const char* name, Merge merge = Merge::mean) {
    const Variable made = Variable::zeros(name, {brains_});
    graph.state.push_back({name, made, INT32_MIN, INT32_MAX, merge});
    return made;
  };
  next_row_ = whole("next_row", capacity_ - 1);
  since_ = whole("since_change", capacity_);
  steps_ = number("steps_since_change");
  newest_ = number("newest_reward");
  past_ = number("past_reward");
  distance_ = number("reward_distance");
  lowest_ = number("lowest_reward", Merge::smallest);
  highest_ = number("highest_reward", Merge::largest);
}

Tensor Recall::draw(const Tensor& generator, const Tensor& filled) const {
  const Tensor reach = minimum(reshape(filled, {brains_, 1}), unsqueeze(since_.value(), 1));
  const Tensor place = random_integers(generator, {brains_, batch_}, reach, 0);
  return remainder(unsqueeze(next_row_.value(), 1) + (capacity_ - reach) + place, capacity_);
}

Tensor Recall::take_in(const Tensor& rewards, const Tensor& there, std::vector<Update>& updates) const {
  const Tensor is_there = logical_and(there, is_finite(rewards));
  const Tensor known = where(is_there, rewards, zeros_like(rewards));
  const Tensor count = sum(cast(is_there, DType::float32), {1});
  const Tensor any = greater(count, 0.0f);
  const Tensor mean = sum(known, {1}) / maximum(count, 1.0f);
  const Tensor steps = steps_.value() + count;
  const auto average = [&](const Variable& of, const Tensor& value, std::int32_t most) {
    const Tensor share = minimum(count / maximum(minimum(steps, static_cast<float>(most)), 1.0f), 1.0f);
    return where(any, lerp(of.value(), value, share), of.value());
  };
  const Tensor newest = average(newest_, mean, kNewest);
  const Tensor past = average(past_, mean, kPast);
  const Tensor lowest = minimum(lowest_.value(), min(known, {1})),
               highest = maximum(highest_.value(), max(known, {1}));
  const Tensor drop = past - newest;
  const Tensor most = maximum(sqrt(distance_.value()) * kDeviations, (highest - lowest) * kLeastDrop);
  const Tensor changed =
      logical_and(greater(steps_.value(), static_cast<float>(kPast) / 2), greater(drop, most));
  const Tensor distance = average(distance_, square(maximum(drop, 0.0f)), kPast);

  const Tensor arrived = sum(cast(there, DType::int32), {1});
  const Tensor since = minimum(since_.value() + arrived, capacity_);
  const auto put = [&](const Variable& to, const Tensor& value) {
    updates.push_back(Update::assign(to, value));
  };
  put(next_row_, remainder(next_row_.value() + arrived, capacity_));
  put(since_, where(changed, minimum(since, kNewest), since));
  put(steps_, where(changed, zeros_like(steps), minimum(steps, static_cast<float>(kPast))));
  put(newest_, newest);
  put(past_, past);
  put(distance_, where(changed, zeros_like(distance), distance));
  if (change_epsilon_.ok()) {
    const Tensor settled = maximum(change_epsilon_.value() - count * (kChangeEpsilon / kUnsettled), 0.0f);
    put(change_epsilon_, where(changed, zeros_like(settled) + kChangeEpsilon, settled));
  }
  put(lowest_, lowest);
  put(highest_, highest);
  return changed;
}

}  // namespace imprint::agent

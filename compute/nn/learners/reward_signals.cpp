#include "compute/nn/learners/reward_signals.h"

#include <algorithm>
#include <numbers>
#include <utility>

#include "compute/graph/gradients/autodiff.h"
#include "compute/nn/initialise.h"
#include "compute/nn/losses/losses.h"

namespace imprint::nn {
namespace {

constexpr double kMostSeen = 5;

// Layers with weights [P, in, out] and biases [P, 1, out].
class Layers {
 public:
  Layers() = default;
  // smooth: tanh, whose slope has a slope; else relu.
  Layers(const SignalShape& shape, const std::string& part, const std::vector<std::int64_t>& sizes,
         bool smooth, Parameters& into)
      : smooth_(smooth) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const std::string layer = part + "." + std::to_string(i);
      std::vector<float> weights;
      for (std::int64_t p = 0; p < shape.brains; ++p) {
        const std::vector<float> own =
            initial_values({Scheme::orthogonal, std::numbers::sqrt2}, shape.name + "." + layer,
                           {.rows = sizes[i],
                            .columns = sizes[i + 1],
                            .fan_in = sizes[i],
                            .fan_out = sizes[i + 1],
                            .seed = shape.seed + static_cast<std::uint64_t>(p)});
        weights.insert(weights.end(), own.begin(), own.end());
      }
      weights_.emplace_back(shape.name + "." + layer + ".weight", Shape{shape.brains, sizes[i], sizes[i + 1]},
                            weights);
      biases_.push_back(Variable::zeros(shape.name + "." + layer + ".bias", {shape.brains, 1, sizes[i + 1]}));
      into.add(layer + ".weight", weights_.back());
      into.add(layer + ".bias", biases_.back());
    }
  }

  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      x = matmul(x, weights_[i].value()) + biases_[i].value();
      if (i + 1 < weights_.size()) x = smooth_ ? tanh(x) : relu(x);
    }
    return x;
  }

 private:
  std::vector<Variable> weights_, biases_;
  bool smooth_ = false;
};

// Mean over the rows that are known, [P, n] -> [P].
Tensor mean_of(const Tensor& values, const Tensor& known) {
  const Tensor there = cast(known, DType::float32);
  return sum(where(known, values, zeros_like(values)), {1}) / maximum(sum(there, {1}), 1.0f);
}

class Novelty final : public RewardSignal {
 public:
  explicit Novelty(const SignalShape& shape) {
    target_ = Layers(shape, "target", {shape.observations, shape.hidden, shape.features}, false, fixed_);
    predictor_ = Layers(shape, "predictor", {shape.observations, shape.hidden, shape.hidden, shape.features},
                        false, learned_);
  }
  Tensor reward(const SignalRows& rows) const override { return stop_gradient(error(rows)); }
  Result<Tensor> loss(const SignalRows& rows, const SignalRows&, const Tensor&) const override {
    return mean(error(rows), {1});
  }

 private:
  // Where no observation follows, the last one counts.
  Tensor error(const SignalRows& rows) const {
    const Tensor seen = where(unsqueeze(rows.known, 2), rows.next_observation, rows.observation);
    return mean(square(predictor_(seen) - stop_gradient(target_(seen))), {2});
  }

  Layers target_, predictor_;
};

class Surprise final : public RewardSignal {
 public:
  explicit Surprise(const SignalShape& shape) : action_(shape.action) {
    const std::int64_t features = shape.features, numbers = shape.action.outputs();
    features_ = Layers(shape, "features", {shape.observations, shape.hidden, features}, false, learned_);
    forward_ = Layers(shape, "forward", {features + numbers, shape.hidden, features}, false, learned_);
    inverse_ = Layers(shape, "inverse", {2 * features, shape.hidden, numbers}, false, learned_);
  }
  Tensor reward(const SignalRows& rows) const override {
    const Tensor error = forecast_error(rows, features_(rows.observation), features_(rows.next_observation));
    return stop_gradient(where(rows.known, error, zeros_like(error)));
  }
  Result<Tensor> loss(const SignalRows& rows, const SignalRows&, const Tensor&) const override {
    constexpr float kForecast = 0.2f;
    const Tensor before = features_(rows.observation), after = features_(rows.next_observation);
    return mean_of(forecast_error(rows, before, after), rows.known) * kForecast +
           mean_of(action_error(rows, inverse_(concat({before, after}, 2))), rows.known) * (1 - kForecast);
  }

 private:
  Tensor forecast_error(const SignalRows& rows, const Tensor& before, const Tensor& after) const {
    return mean(square(forward_(concat({before, rows.action}, 2)) - after), {2});
  }
  Tensor action_error(const SignalRows& rows, const Tensor& told) const {
    Tensor error = zeros({told.extent(0), told.extent(1)});
    std::int64_t first = 0;
    for (const std::int64_t choices : action_.branches) {
      const Tensor logits = narrow(told, 2, first, choices), taken = narrow(rows.action, 2, first, choices);
      error = error - sum(log_softmax(logits, 2) * taken, {2});
      first += choices;
    }
    if (action_.continuous == 0) return error;
    return error + mean(square(narrow(told, 2, first, action_.continuous) -
                               narrow(rows.action, 2, first, action_.continuous)),
                        {2});
  }

  ActionSpace action_;
  Layers features_, forward_, inverse_;
};

class Imitation final : public RewardSignal {
 public:
  Imitation(const SignalShape& shape, double penalty) : penalty_(penalty) {
    const std::int64_t inputs = shape.observations + shape.action.outputs();
    judge_ = Layers(shape, "judge", {inputs, shape.hidden, shape.hidden, 1}, true, learned_);
  }
  bool imitates() const override { return true; }
  Tensor reward(const SignalRows& rows) const override {
    return stop_gradient(softplus(squeeze(judge_(inputs(rows)), 2)));
  }
  Result<Tensor> loss(const SignalRows& rows, const SignalRows& shown, const Tensor& mix) const override {
    const Tensor own = inputs(rows), model = inputs(shown);
    // -log D of what was shown, -log(1 - D) of what was done.
    const Tensor told_apart =
        mean(softplus(neg(squeeze(judge_(model), 2))), {1}) + mean(softplus(squeeze(judge_(own), 2)), {1});
    const Tensor between = lerp(own, model, mix);
    IMPRINT_ASSIGN(const std::vector<Tensor> slopes,
                   gradients(sum(judge_(between)), std::span<const Tensor>(&between, 1)));
    const Tensor slope = sqrt(sum(square(slopes[0]), {2}) + 1e-12f);
    return told_apart + mean(square(slope - 1.0f), {1}) * static_cast<float>(penalty_);
  }

 private:
  static Tensor inputs(const SignalRows& rows) { return concat({rows.observation, rows.action}, 2); }

  double penalty_;
  Layers judge_;
};

}  // namespace

Tensor action_numbers(const ActionSpace& space, const Tensor& discrete, const Tensor& continuous) {
  std::vector<Tensor> parts;
  for (std::size_t b = 0; b < space.branches.size(); ++b)
    parts.push_back(
        one_hot(squeeze(narrow(discrete, 2, static_cast<std::int64_t>(b), 1), 2), space.branches[b]));
  if (space.continuous > 0) parts.push_back(continuous);
  return parts.size() == 1 ? parts[0] : concat(parts, 2);
}

std::shared_ptr<RewardSignal> novelty(const SignalShape& shape) { return std::make_shared<Novelty>(shape); }
std::shared_ptr<RewardSignal> surprise(const SignalShape& shape) { return std::make_shared<Surprise>(shape); }
std::shared_ptr<RewardSignal> imitation(const SignalShape& shape, double penalty) {
  return std::make_shared<Imitation>(shape, penalty);
}

RewardSignals::RewardSignals(RewardSignalsOptions options, std::vector<SignalTerm> terms)
    : options_(std::move(options)),
      terms_(std::move(terms)),
      seen_(options_.name + ".seen", options_.brains, options_.observations),
      adam_(learned(), {.groups = options_.brains}) {
  state_.add("seen", seen_.state());
  for (const SignalTerm& term : terms_) {
    scales_.emplace_back(options_.name + "." + term.name + ".scale", options_.brains, 1);
    state_.add(term.name, term.signal->learned());
    state_.add(term.name, term.signal->fixed());
    if (!term.signal->imitates()) state_.add(term.name + ".scale", scales_.back().state());
  }
  state_.add("adam", adam_.state());
}

Parameters RewardSignals::learned() const {
  Parameters all;
  for (const SignalTerm& term : terms_) all.add(term.name, term.signal->learned());
  return all;
}

bool RewardSignals::imitates() const {
  return std::ranges::any_of(terms_, [](const SignalTerm& term) { return term.signal->imitates(); });
}

GroupedMoments::Values RewardSignals::watch(const Tensor& observation, const Tensor& active,
                                            std::vector<Update>& updates) const {
  const GroupedMoments::Values grown = seen_.grown(GroupedMoments::of(observation), active);
  seen_.assign(grown, updates);
  return grown;
}

SignalRows RewardSignals::scaled(const SignalRows& rows, const GroupedMoments::Values& seen) {
  // A deviation below this counts as this: numbers that hardly move are not blown up.
  constexpr float kLeastDeviation = 0.05f;
  const Tensor scale = maximum(sqrt(seen.variance), kLeastDeviation);
  const auto at_scale = [&](const Tensor& observation) {
    return clamp((observation - seen.mean) / scale, -kMostSeen, kMostSeen);
  };
  SignalRows found = rows;
  found.observation = at_scale(rows.observation);
  if (rows.next_observation.ok()) found.next_observation = at_scale(rows.next_observation);
  return found;
}

Tensor RewardSignals::reward_in_rollout(std::size_t term, const SignalRows& rows,
                                        const std::function<Tensor(const Tensor& reward)>& sums,
                                        const Tensor& active, std::vector<Update>& updates) const {
  const RewardSignal& signal = *terms_[term].signal;
  const Tensor raw = signal.reward(rows);
  if (signal.imitates()) return minimum(raw, static_cast<float>(kMost));
  const GroupedMoments::Values moments =
      scales_[term].grown(GroupedMoments::of(unsqueeze(sums(raw), 2)), active);
  scales_[term].assign(moments, updates);
  return minimum(raw / sqrt(squeeze(moments.variance, 2) + 1e-8f), static_cast<float>(kMost));
}

Tensor RewardSignals::total(const Tensor& reward, const SignalRows& rows, const Tensor& active,
                            std::vector<Update>& updates) const {
  Tensor total = reward * static_cast<float>(options_.reward_strength);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Tensor own = terms_[i].signal->reward(rows);
    if (!terms_[i].signal->imitates()) {
      const GroupedMoments::Values moments = scales_[i].grown(GroupedMoments::of(unsqueeze(own, 2)), active);
      scales_[i].assign(moments, updates);
      own = own / sqrt(squeeze(moments.variance + square(moments.mean), 2) + 1e-8f);
    }
    total = total + minimum(own, static_cast<float>(kMost)) * static_cast<float>(terms_[i].strength);
  }
  return total;
}

Result<std::vector<Update>> RewardSignals::learn(const SignalRows& rows, const SignalRows& shown,
                                                 const Tensor& can_imitate, const Tensor& active,
                                                 const Tensor& generator, std::uint32_t stream) const {
  Tensor all = zeros({options_.brains});
  const Tensor mix = imitates()
                         ? random_uniform(generator, {options_.brains, rows.observation.extent(1), 1}, stream)
                         : Tensor();
  for (const SignalTerm& term : terms_) {
    IMPRINT_ASSIGN(const Tensor loss, term.signal->loss(rows, shown, mix));
    all = all + (term.signal->imitates() ? where(can_imitate, loss, zeros_like(loss)) : loss);
  }
  // Brains share no weights, so the gradient of the sum is each brain's own gradient.
  IMPRINT_ASSIGN(const std::vector<Tensor> raw, gradients(sum(all), adam_.parameters().values()));
  IMPRINT_ASSIGN(const ClippedGradients clipped,
                 clip_by_global_norm(raw, options_.max_gradient_norm, options_.brains));
  const Tensor alive =
      logical_and(active, logical_and(is_finite(all), is_finite(reshape(clipped.norm, {options_.brains}))));
  return adam_.step(clipped.gradients, options_.learning_rate, cast(alive, DType::float32));
}

}  // namespace imprint::nn

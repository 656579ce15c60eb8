// The step that rules share, and the rules of adaptive rates.

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"

namespace imprint::nn {
namespace {

Tensor average(const Tensor& old, const Tensor& next, double beta) {
  return Tensor(beta) * old + Tensor(1 - beta) * next;
}

Variable filled(const std::string& name, const Shape& shape, float value) {
  const std::vector<float> values(static_cast<std::size_t>(shape.element_count()), value);
  return Variable(name, shape, std::span<const float>(values));
}

}  // namespace

RuleOptimiser::RuleOptimiser(const Parameters& parameters, Plan plan)
    : Optimiser(parameters, plan.groups), plan_(std::move(plan)) {
  for (const Parameter& parameter : parameters_) {
    const Shape whole = parameter.variable.shape();
    moments_.emplace_back();
    for (const Moment& moment : plan_.moments) {
      const Shape shape = moment.shape != nullptr ? moment.shape(parameter, groups_) : whole;
      const std::string name = parameter.variable.name() + "." + moment.name;
      moments_.back().push_back(moment.initial == 0 ? Variable::zeros(name, shape)
                                                    : filled(name, shape, moment.initial));
      state_.add(moment.name + "." + parameter.name, moments_.back().back());
    }
  }
  const Shape per_network{std::max<std::int64_t>(groups_, 1)};
  const std::string owner = parameters_.empty() ? std::string("optimiser") : parameters_[0].variable.name();
  for (const std::string& name : plan_.scalars) {
    scalars_.push_back(filled(owner + "." + name, per_network, 1));
    state_.add(name, scalars_.back());
  }
  if (!plan_.counts) return;
  step_ = Variable::zeros(owner + ".step", per_network, DType::int32);
  state_.add("step", step_);
}

Result<std::vector<Update>> RuleOptimiser::step(std::span<const Tensor> gradients,
                                                const Tensor& learning_rate, const Tensor& active) const {
  IMPRINT_CHECK(validate());
  IMPRINT_ASSIGN(OptimiserStep step,
                 begin_optimiser_step(gradients, parameters_, groups_, learning_rate, active));
  Shared shared{.rate = groups_ > 0 ? step.learning_rate : reshape(step.learning_rate, {1})};
  const Tensor count = plan_.counts ? step.next_count(step_) : Tensor();
  if (plan_.counts) shared.t = OptimiserStep::as_number(count);
  for (const Variable& scalar : scalars_) shared.scalars.push_back(scalar.value());
  share(shared);
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Tensor value = parameter.value();
    Rule rule{.parameter = parameter,
              .value = value,
              .gradient = gradients[i],
              .rate = beside(step.learning_rate, parameter, groups_),
              .done = plan_.counts ? beside(step_.value(), parameter, groups_) : Tensor(),
              .axes = own_axes(value, groups_)};
    const Tensor decay(plan_.weight_decay);
    if (plan_.weight_decay != 0) {
      if (plan_.decoupled)
        rule.decay = rule.rate * decay;
      else
        rule.gradient = rule.gradient + decay * value;
    }
    for (const Tensor& factor : shared.factors) rule.factors.push_back(beside(factor, parameter, groups_));
    for (const Variable& moment : moments_[i]) rule.moments.push_back(moment.value());
    rules.push_back(std::move(rule));
  }
  const std::vector<Tensor> values = next_of_all(rules);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor alive = step.alive_beside(parameters_[i]);
    for (std::size_t k = 0; k < moments_[i].size(); ++k)
      step.assign(moments_[i][k], rules[i].moments[k], alive);
    step.assign(parameters_[i].variable, values[i], alive);
  }
  for (std::size_t k = 0; k < scalars_.size(); ++k)
    step.assign(scalars_[k], shared.scalars[k], step.counting(scalars_[k]));
  if (plan_.counts) step.updates.push_back(Update::assign(step_, count));
  return step.finish();
}

std::vector<Tensor> RuleOptimiser::one_by_one(std::span<Rule> rules) const {
  std::vector<Tensor> values;
  for (Rule& rule : rules) {
    const Tensor value = next(rule);
    values.push_back(rule.decay.ok() ? value - rule.decay * rule.value : value);
  }
  return values;
}

RmsProp::RmsProp(const Parameters& parameters, const RmsPropOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .moments =
                                     [&] {
                                       std::vector<Moment> moments{{.name = "second_moment"}};
                                       if (options.momentum != 0) moments.push_back({.name = "velocity"});
                                       if (options.centred) moments.push_back({.name = "first_moment"});
                                       return moments;
                                     }()}),
      options_(options) {}

Tensor RmsProp::next(Rule& rule) const {
  Tensor& square_mean = rule.moments[0];
  square_mean = average(square_mean, square(rule.gradient), options_.smoothing);
  Tensor spread = square_mean;
  if (options_.centred) {
    Tensor& mean = rule.moments.back();
    mean = average(mean, rule.gradient, options_.smoothing);
    spread = clamp_min(spread - square(mean), 0);  // rounding may leave less
  }
  Tensor change = rule.gradient / (sqrt(spread) + Tensor(options_.epsilon));
  if (options_.momentum != 0) {
    Tensor& velocity = rule.moments[1];
    change = velocity = Tensor(options_.momentum) * velocity + change;
  }
  return rule.value - rule.rate * change;
}

Adagrad::Adagrad(const Parameters& parameters, const AdagradOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .moments = {{.name = "sum", .initial = static_cast<float>(options.initial)}},
                                 .counts = options.rate_decay != 0}),
      options_(options) {}

void Adagrad::share(Shared& shared) const {
  shared.factors = {options_.rate_decay == 0
                        ? shared.rate
                        : shared.rate / (1.0f + (shared.t - 1.0f) * Tensor(options_.rate_decay))};
}

Tensor Adagrad::next(Rule& rule) const {
  rule.moments[0] = rule.moments[0] + square(rule.gradient);
  return rule.value - rule.factors[0] * rule.gradient / (sqrt(rule.moments[0]) + Tensor(options_.epsilon));
}

Adadelta::Adadelta(const Parameters& parameters, const AdadeltaOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .moments = {{.name = "second_moment"}, {.name = "change"}}}),
      options_(options) {}

Tensor Adadelta::next(Rule& rule) const {
  const Tensor epsilon(options_.epsilon);
  Tensor &square_mean = rule.moments[0], &change = rule.moments[1];
  square_mean = average(square_mean, square(rule.gradient), options_.smoothing);
  const Tensor delta = sqrt(change + epsilon) / sqrt(square_mean + epsilon) * rule.gradient;
  change = average(change, square(delta), options_.smoothing);
  return rule.value - rule.rate * delta;
}

Adamax::Adamax(const Parameters& parameters, const AdamaxOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .moments = {{.name = "first_moment"}, {.name = "largest"}},
                                 .counts = true}),
      options_(options) {}

void Adamax::share(Shared& shared) const {
  shared.factors = {shared.rate / bias_correction(shared.t, options_.beta1)};
}

Tensor Adamax::next(Rule& rule) const {
  Tensor &mean = rule.moments[0], &largest = rule.moments[1];
  mean = average(mean, rule.gradient, options_.beta1);
  largest = maximum(Tensor(options_.beta2) * largest, abs(rule.gradient) + Tensor(options_.epsilon));
  return rule.value - rule.factors[0] * mean / largest;
}

NAdam::NAdam(const Parameters& parameters, const NAdamOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .decoupled = options.decoupled,
                                 .moments = {{.name = "first_moment"}, {.name = "second_moment"}},
                                 .counts = true,
                                 .scalars = {"momentum_product"}}),
      options_(options) {}

void NAdam::share(Shared& shared) const {
  const auto momentum = [&](const Tensor& t) {
    const Tensor power = exp(t * Tensor(options_.momentum_decay * std::log(0.96)));
    return Tensor(options_.beta1) * (1.0f - 0.5f * power);
  };
  const Tensor now = momentum(shared.t), later = momentum(shared.t + 1.0f);
  const Tensor product = shared.scalars[0] * now;
  shared.scalars[0] = product;
  shared.factors = {shared.rate * (1.0f - now) / (1.0f - product),
                    shared.rate * later / (1.0f - product * later),
                    rsqrt(bias_correction(shared.t, options_.beta2))};
}

Tensor NAdam::next(Rule& rule) const {
  Tensor &mean = rule.moments[0], &square_mean = rule.moments[1];
  mean = average(mean, rule.gradient, options_.beta1);
  square_mean = average(square_mean, square(rule.gradient), options_.beta2);
  const Tensor divisor = sqrt(square_mean) * rule.factors[2] + Tensor(options_.epsilon);
  return rule.value - (rule.factors[0] * rule.gradient + rule.factors[1] * mean) / divisor;
}

RAdam::RAdam(const Parameters& parameters, const RAdamOptions& options)
    : RuleOptimiser(parameters, {.groups = options.groups,
                                 .weight_decay = options.weight_decay,
                                 .decoupled = options.decoupled,
                                 .moments = {{.name = "first_moment"}, {.name = "second_moment"}},
                                 .counts = true}),
      options_(options) {}

// rho = rho_inf - 2 t beta2^t / (1 - beta2^t). With x = -t log(beta2) the last term is
// 2 / -log(beta2) times x / expm1(x), which is near rho_inf: the difference is taken in exact numbers, and
// 1 - x / expm1(x) by its series where x is small.
void RAdam::share(Shared& shared) const {
  const double decay = -std::log(options_.beta2), limit = 2 / (1 - options_.beta2) - 1;
  const Tensor x = shared.t * Tensor(decay);
  const Tensor s = square(x);
  const Tensor series =
      x * 0.5f - s * (Tensor(1.0 / 12) -
                      s * (Tensor(1.0 / 720) - s * (Tensor(1.0 / 30240) - s * Tensor(1.0 / 1209600))));
  const Tensor rest = where(x < 1.0f, series, 1.0f - x / expm1(x));
  const Tensor rho = Tensor(limit - 2 / decay) + Tensor(2 / decay) * rest;
  const Tensor rectifies = rho > 5.0f;
  const Tensor safe = where(rectifies, rho, 6.0f);
  const Tensor factor =
      sqrt((safe - 4.0f) * (safe - 2.0f) / safe * Tensor(limit / ((limit - 4) * (limit - 2))) *
           bias_correction(shared.t, options_.beta2));
  shared.factors = {shared.rate / bias_correction(shared.t, options_.beta1), factor,
                    cast(rectifies, DType::float32)};
}

Tensor RAdam::next(Rule& rule) const {
  Tensor &mean = rule.moments[0], &square_mean = rule.moments[1];
  mean = average(mean, rule.gradient, options_.beta1);
  square_mean = average(square_mean, square(rule.gradient), options_.beta2);
  const Tensor scale = rule.factors[1] / (sqrt(square_mean) + Tensor(options_.epsilon));
  return rule.value - rule.factors[0] * mean * where(rule.factors[2] > 0.0f, scale, 1.0f);
}

}  // namespace imprint::nn

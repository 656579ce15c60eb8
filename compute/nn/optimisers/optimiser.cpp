#include "compute/nn/optimisers/optimiser.h"

#include <algorithm>

#include "compute/nn/optimisers/optimiser_step.h"

namespace imprint::nn {

Sgd::Sgd(const Parameters& parameters, const SgdOptions& options)
    : Optimiser(parameters, options.groups), options_(options) {
  if (options.momentum == 0) return;
  for (const Parameter& parameter : parameters_) {
    velocity_.push_back(moment_for("velocity", parameter));
    state_.add("velocity." + parameter.name, velocity_.back());
  }
}

Result<std::vector<Update>> Sgd::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                      const Tensor& active) const {
  IMPRINT_ASSIGN(OptimiserStep step,
                 begin_optimiser_step(gradients, parameters_, groups_, learning_rate, active));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Tensor alive = step.alive_beside(parameter);
    Tensor direction = gradients[i];
    if (options_.weight_decay != 0) direction = direction + Tensor(options_.weight_decay) * parameter.value();
    if (options_.momentum != 0) {
      const Tensor velocity = Tensor(options_.momentum) * velocity_[i].value() + direction;
      step.assign(velocity_[i], velocity, alive);
      direction = options_.nesterov ? direction + Tensor(options_.momentum) * velocity : velocity;
    }
    step.assign(parameter.variable,
                parameter.value() - beside(step.learning_rate, parameter, groups_) * direction, alive);
  }
  return step.finish();
}

Adam::Adam(const Parameters& parameters, const AdamOptions& options)
    : Optimiser(parameters, options.groups), options_(options) {
  for (const Parameter& parameter : parameters_) {
    first_moment_.push_back(moment_for("first_moment", parameter));
    second_moment_.push_back(moment_for("second_moment", parameter));
    state_.add("first_moment." + parameter.name, first_moment_.back());
    state_.add("second_moment." + parameter.name, second_moment_.back());
    if (!options.amsgrad) continue;
    largest_moment_.push_back(moment_for("largest_moment", parameter));
    state_.add("largest_moment." + parameter.name, largest_moment_.back());
  }
  const std::string owner = parameters_.empty() ? std::string("adam") : parameters_[0].variable.name();
  step_ = Variable::zeros(owner + ".step", {std::max<std::int64_t>(groups_, 1)}, DType::int32);
  state_.add("step", step_);
}

Result<std::vector<Update>> Adam::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                       const Tensor& active) const {
  IMPRINT_ASSIGN(OptimiserStep step,
                 begin_optimiser_step(gradients, parameters_, groups_, learning_rate, active));
  // The corrections use the counter's new value. Nothing then needs the old one, so it is updated in place. A
  // frozen group keeps its moments, whatever the quotient is.
  const Tensor count = step.next_count(step_);
  const Tensor steps = OptimiserStep::as_number(count);
  const Tensor correction1 = bias_correction(steps, options_.beta1);
  const Tensor correction2 = bias_correction(steps, options_.beta2);
  const Tensor rate = (groups_ > 0 ? step.learning_rate : reshape(step.learning_rate, {})) / correction1;
  const Tensor scale = rsqrt(correction2);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Tensor value = parameter.value();
    const Tensor alive = step.alive_beside(parameter);
    const bool decays = options_.weight_decay != 0;
    const Tensor gradient =
        decays && !options_.decoupled ? gradients[i] + Tensor(options_.weight_decay) * value : gradients[i];
    const Tensor first =
        Tensor(options_.beta1) * first_moment_[i].value() + Tensor(1 - options_.beta1) * gradient;
    const Tensor second =
        Tensor(options_.beta2) * second_moment_[i].value() + Tensor(1 - options_.beta2) * square(gradient);
    Tensor largest = second;
    if (options_.amsgrad) {
      largest = maximum(largest_moment_[i].value(), second);
      step.assign(largest_moment_[i], largest, alive);
    }
    const Tensor denominator = sqrt(largest) * beside(scale, parameter, groups_) + Tensor(options_.epsilon);
    Tensor next = value - beside(rate, parameter, groups_) * first / denominator;
    if (decays && options_.decoupled)
      next = next - beside(step.learning_rate, parameter, groups_) * Tensor(options_.weight_decay) * value;
    step.assign(first_moment_[i], first, alive);
    step.assign(second_moment_[i], second, alive);
    step.assign(parameter.variable, next, alive);
  }
  step.updates.push_back(Update::assign(step_, count));
  return step.finish();
}

Adam adam_w(const Parameters& parameters, AdamOptions options) {
  options.decoupled = true;
  return Adam(parameters, options);
}

}  // namespace imprint::nn

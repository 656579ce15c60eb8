#include "compute/nn/optimiser.h"

#include <algorithm>
#include <cmath>

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

// A scalar, [1] or [groups] tensor as an operand beside a parameter.
Tensor beside(const Tensor& per_group, const Parameter& parameter, std::int64_t groups) {
  if (!per_group.ok() || groups == 0) return per_group.ok() ? reshape(per_group, {}) : per_group;
  if (per_group.rank() == 0) return per_group;
  Shape aligned{groups};
  while (aligned.rank() < parameter.variable.shape().rank()) aligned.append(1);
  return reshape(per_group, aligned);
}

Result<> check_per_group(const char* what, const Tensor& tensor, std::int64_t groups) {
  if (!tensor.ok()) return tensor.error();
  const bool fits = groups == 0 ? tensor.shape().element_count() == 1
                                : tensor.rank() == 0 || tensor.shape() == Shape{groups};
  if (fits && tensor.dtype() == DType::float32) return {};
  return make_error(ErrorCode::shape_mismatch, text(what, ": found ", dtype_name(tensor.dtype()), " ",
                                                    tensor.shape().text(), ", expected a float32 scalar",
                                                    groups > 0 ? text(" or [", groups, "]") : std::string()));
}

Result<> check_gradients(std::span<const Tensor> gradients, const Parameters& parameters,
                         std::int64_t groups) {
  if (gradients.size() != parameters.size())
    return make_error(ErrorCode::invalid_argument,
                      text("optimiser: found ", gradients.size(), " gradients, expected ", parameters.size(),
                           ", one per parameter in order"));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Tensor value = parameters[i].value();
    if (!value.ok()) return value.error();
    if (!gradients[i].ok()) return gradients[i].error();
    if (gradients[i].shape() != value.shape())
      return make_error(ErrorCode::shape_mismatch,
                        text("optimiser: found gradient ", gradients[i].shape().text(), " for ",
                             parameters[i].name, ", expected ", value.shape().text()));
    if (groups > 0 && value.extent(0) != groups)
      return make_error(ErrorCode::shape_mismatch,
                        text("optimiser: found ", parameters[i].name, " ", value.shape().text(),
                             ", expected a first extent of ", groups, " groups"));
  }
  return {};
}

bool is_given(const Tensor& tensor) { return !is_empty(tensor); }

// The part of one step that all parameters share.
struct Step {
  std::int64_t groups = 0;
  Tensor learning_rate;
  Tensor active;  // empty: all
  std::vector<Update> updates;

  // The new content, or the old one where frozen. Selected, not blended: NaN times 0 is NaN.
  void assign(const Variable& variable, const Tensor& value, const Tensor& alive) {
    updates.push_back(Update::assign(variable, alive.ok() ? where(alive, value, variable.value()) : value));
  }
  Tensor alive_beside(const Parameter& parameter) const {
    return active.ok() ? beside(active, parameter, groups) > 0.0f : Tensor();
  }

  Result<std::vector<Update>> finish() {
    for (const Update& update : updates)
      if (!update.value.ok()) return update.value.error();
    return std::move(updates);
  }
};

Result<Step> begin_step(std::span<const Tensor> gradients, const Parameters& parameters, std::int64_t groups,
                        const Tensor& learning_rate, const Tensor& active) {
  IMPRINT_CHECK(check_gradients(gradients, parameters, groups));
  const Tensor rate = learning_rate.dtype() == DType::int32 && learning_rate.rank() == 0
                          ? cast(learning_rate, DType::float32)
                          : learning_rate;
  IMPRINT_CHECK(check_per_group("optimiser: learning rate", rate, groups));
  if (is_given(active)) IMPRINT_CHECK(check_per_group("optimiser: active", active, groups));
  return Step{.groups = groups, .learning_rate = rate, .active = active};
}

Variable zeros_for(const std::string& kind, const Parameter& parameter) {
  return Variable::zeros(parameter.variable.name() + "." + kind, parameter.variable.shape());
}

}  // namespace

Result<ClippedGradients> clip_by_global_norm(std::span<const Tensor> gradients, double max_norm,
                                             std::int64_t groups, const Tensor& loss_scale) {
  if (is_given(loss_scale))
    IMPRINT_CHECK(check_per_group("clip_by_global_norm: loss scale", loss_scale, groups));
  Tensor squares = groups > 0 ? zeros({groups}) : Tensor(0.0f);
  for (const Tensor& gradient : gradients) {
    if (!gradient.ok()) return gradient.error();
    if (groups > 0 && gradient.extent(0) != groups)
      return make_error(ErrorCode::shape_mismatch,
                        text("clip_by_global_norm: found gradient ", gradient.shape().text(),
                             ", expected a first extent of ", groups, " groups"));
    Axes axes;
    for (int axis = groups > 0 ? 1 : 0; axis < gradient.rank(); ++axis) axes.push_back(axis);
    squares = squares + (axes.empty() ? square(gradient) : sum(square(gradient), axes));
  }
  ClippedGradients clipped;
  clipped.norm = sqrt(squares);
  if (is_given(loss_scale)) clipped.norm = clipped.norm / reshape(loss_scale, clipped.norm.shape());
  Tensor scale = std::isinf(max_norm) ? ones_like(clipped.norm)
                                      : clamp_max(Tensor(max_norm) / (clipped.norm + Tensor(1e-6)), 1);
  // One factor for both, applied to the raw sums, so that the norm is computed in the kernel that sums them.
  if (is_given(loss_scale)) scale = scale / reshape(loss_scale, scale.shape());
  for (const Tensor& gradient : gradients) {
    Shape aligned = groups > 0 ? Shape{groups} : Shape{};
    while (groups > 0 && aligned.rank() < gradient.rank()) aligned.append(1);
    clipped.gradients.push_back(gradient * reshape(scale, aligned));
    if (!clipped.gradients.back().ok()) return clipped.gradients.back().error();
  }
  if (!clipped.norm.ok()) return clipped.norm.error();
  return clipped;
}

Sgd::Sgd(const Parameters& parameters, const SgdOptions& options)
    : Optimiser(parameters, options.groups), options_(options) {
  if (options.momentum == 0) return;
  for (const Parameter& parameter : parameters_) {
    velocity_.push_back(zeros_for("velocity", parameter));
    state_.add("velocity." + parameter.name, velocity_.back());
  }
}

Result<std::vector<Update>> Sgd::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                      const Tensor& active) const {
  IMPRINT_ASSIGN(Step step, begin_step(gradients, parameters_, groups_, learning_rate, active));
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
    first_moment_.push_back(zeros_for("first_moment", parameter));
    second_moment_.push_back(zeros_for("second_moment", parameter));
    state_.add("first_moment." + parameter.name, first_moment_.back());
    state_.add("second_moment." + parameter.name, second_moment_.back());
  }
  const std::string owner = parameters_.empty() ? std::string("adam") : parameters_[0].variable.name();
  step_ = Variable::zeros(owner + ".step", {std::max<std::int64_t>(groups_, 1)}, DType::int32);
  state_.add("step", step_);
}

Result<std::vector<Update>> Adam::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                       const Tensor& active) const {
  IMPRINT_ASSIGN(Step step, begin_step(gradients, parameters_, groups_, learning_rate, active));
  const Tensor counting =
      step.active.ok() ? reshape(step.active.rank() == 0 ? expand(step.active, step_.shape()) : step.active,
                                 step_.shape()) > 0.0f
                       : Tensor();
  // The corrections use the counter's new value. Nothing then needs the old one, so it is updated in place. A
  // frozen group keeps its moments, whatever the quotient is.
  const Tensor count = counting.ok() ? where(counting, step_.value() + 1, step_.value()) : step_.value() + 1;
  const Tensor steps = cast(maximum(count, 1), DType::float32);
  // 1 - beta^t by expm1: subtracting the power from 1 would lose most digits in the first steps.
  const Tensor correction1 = -expm1(steps * Tensor(std::log(options_.beta1)));
  const Tensor correction2 = -expm1(steps * Tensor(std::log(options_.beta2)));
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
    const Tensor denominator = sqrt(second) * beside(scale, parameter, groups_) + Tensor(options_.epsilon);
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

#include "compute/nn/optimisers/optimiser_step.h"

#include <cmath>

#include "compute/base/amount.h"
#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

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
  if (parameters.empty())
    return make_error(ErrorCode::invalid_argument,
                      "optimiser: found no parameters, expected one or more. Does matching() fit no name?");
  if (gradients.size() != parameters.size())
    return make_error(ErrorCode::invalid_argument,
                      text("optimiser: found ", amount(gradients.size(), "gradient"), ", expected ",
                           parameters.size(), ", one per parameter in order"));
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

Axes own_axes(const Tensor& value, std::int64_t groups) {
  Axes axes;
  for (int axis = groups > 0 ? 1 : 0; axis < value.rank(); ++axis) axes.push_back(axis);
  return axes;
}

Tensor OptimiserStep::counting(const Variable& counter) const {
  if (!active.ok()) return Tensor();
  return reshape(active.rank() == 0 ? expand(active, counter.shape()) : active, counter.shape()) > 0.0f;
}

Tensor OptimiserStep::next_count(const Variable& counter) const {
  const Tensor advances = counting(counter);
  return advances.ok() ? where(advances, counter.value() + 1, counter.value()) : counter.value() + 1;
}

Result<std::vector<Update>> OptimiserStep::finish() {
  for (const Update& update : updates)
    if (!update.value.ok()) return update.value.error();
  return std::move(updates);
}

Tensor bias_correction(const Tensor& steps, double beta) { return -expm1(steps * Tensor(std::log(beta))); }

Result<OptimiserStep> begin_optimiser_step(std::span<const Tensor> gradients, const Parameters& parameters,
                                           std::int64_t groups, const Tensor& learning_rate,
                                           const Tensor& active) {
  IMPRINT_CHECK(check_gradients(gradients, parameters, groups));
  const Tensor rate = learning_rate.dtype() == DType::int32 && learning_rate.rank() == 0
                          ? cast(learning_rate, DType::float32)
                          : learning_rate;
  IMPRINT_CHECK(check_per_group("optimiser: learning rate", rate, groups));
  if (!is_empty(active)) IMPRINT_CHECK(check_per_group("optimiser: active", active, groups));
  return OptimiserStep{.groups = groups, .learning_rate = rate, .active = active};
}

Variable moment_for(const std::string& kind, const Parameter& parameter) {
  return Variable::zeros(parameter.variable.name() + "." + kind, parameter.variable.shape());
}

}  // namespace imprint::nn

#include <algorithm>

#include "compute/base/text.h"
#include "compute/nn/optimisers/optimiser_step.h"

namespace imprint::nn {
namespace {

constexpr double kLeastCurvature = 1e-10;  // PyTorch's

Tensor dot(const Tensor& a, const Tensor& b) { return sum(a * b, {}, true); }  // [1]

Tensor flat(std::span<const Tensor> tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) rows.push_back(reshape(tensor, {-1}));
  return concat(rows, 0);
}

// The newest row comes first; the oldest leaves.
Tensor pushed(const Tensor& rows, const Tensor& row) {
  const std::int64_t count = rows.extent(0);
  if (count == 1) return reshape(row, rows.shape());
  Shape one = rows.shape();
  one[0] = 1;
  return concat({reshape(row, one), narrow(rows, 0, 0, count - 1)}, 0);
}

}  // namespace

Lbfgs::Lbfgs(const Parameters& parameters, const LbfgsOptions& options)
    : Optimiser(parameters, 0), options_(options) {
  const std::int64_t n = parameters.element_count(), history = std::max<std::int64_t>(options.history, 1);
  const std::string name = parameters.empty() ? "lbfgs" : parameters[0].variable.name() + ".lbfgs";
  const auto add = [&](const std::string& part, const Shape& shape) {
    const Variable made = Variable::zeros(name + "." + part, shape);
    state_.add(part, made);
    return made;
  };
  gradient_ = add("gradient", {n});
  direction_ = add("direction", {n});
  moves_ = add("moves", {history, n});
  changes_ = add("changes", {history, n});
  inverses_ = add("inverses", {history});
  scale_ = add("scale", {1});
  rate_ = add("rate", {1});
  step_ = Variable::zeros(name + ".step", {1}, DType::int32);
  state_.add("step", step_);
}

// Nocedal, Updating Quasi-Newton Matrices with Limited Storage, 1980: the two loops. Unused rows of the
// history are 0 and change nothing.
Result<std::vector<Update>> Lbfgs::step(std::span<const Tensor> gradients, const Tensor& learning_rate,
                                        const Tensor& active) const {
  IMPRINT_ASSIGN(OptimiserStep step, begin_optimiser_step(gradients, parameters_, 0, learning_rate, active));
  if (gradients.empty()) return std::vector<Update>();
  const Tensor g = flat(gradients), is_first = equal(step_.value(), 0);
  const Tensor change = g - gradient_.value(), move = direction_.value() * rate_.value();
  const Tensor curvature = dot(change, move);
  const Tensor grows = logical_and(logical_not(is_first), curvature > Tensor(kLeastCurvature));
  const Tensor safe = where(grows, curvature, 1.0f);
  const Tensor moves = where(unsqueeze(grows, 1), pushed(moves_.value(), move), moves_.value());
  const Tensor changes = where(unsqueeze(grows, 1), pushed(changes_.value(), change), changes_.value());
  const Tensor inverses = where(grows, pushed(inverses_.value(), recip(safe)), inverses_.value());
  const Tensor squares = where(grows, dot(change, change), 1.0f);
  const Tensor scale = where(is_first, 1.0f, where(grows, safe / squares, scale_.value()));

  const std::int64_t history = moves.extent(0);
  const auto row = [](const Tensor& rows, std::int64_t i) { return squeeze(narrow(rows, 0, i, 1), 0); };
  std::vector<Tensor> shares;
  Tensor direction = -g;
  for (std::int64_t i = 0; i < history; ++i) {
    shares.push_back(dot(row(moves, i), direction) * narrow(inverses, 0, i, 1));
    direction = direction - shares.back() * row(changes, i);
  }
  direction = direction * scale;
  for (std::int64_t i = history - 1; i >= 0; --i) {
    const Tensor share = dot(row(changes, i), direction) * narrow(inverses, 0, i, 1);
    direction = direction + (shares[static_cast<std::size_t>(i)] - share) * row(moves, i);
  }
  direction = where(is_first, -g, direction);
  const Tensor given = reshape(step.learning_rate, {1});
  const Tensor first = minimum(1.0f, recip(sum(abs(g), {}, true)));
  const Tensor rate = where(is_first, first * given, given);

  // Nothing changes near the optimum, as in PyTorch.
  Tensor alive = reshape((max)(abs(g)), {1}) > Tensor(options_.least_gradient);
  if (active.ok()) alive = logical_and(alive, reshape(active, {1}) > 0.0f);
  const Tensor goes = logical_and(alive, dot(g, direction) <= Tensor(-options_.least_change));
  std::int64_t at = 0;
  for (const Parameter& parameter : parameters_) {
    const Tensor value = parameter.value();
    const std::int64_t count = value.shape().element_count();
    const Tensor along = reshape(narrow(direction, 0, at, count), value.shape());
    step.assign(parameter.variable, value + reshape(rate, {}) * along, reshape(goes, {}));
    at += count;
  }
  step.assign(gradient_, g, alive);
  step.assign(direction_, direction, alive);
  step.assign(moves_, moves, unsqueeze(alive, 1));
  step.assign(changes_, changes, unsqueeze(alive, 1));
  step.assign(inverses_, inverses, alive);
  step.assign(scale_, scale, alive);
  step.assign(rate_, rate, alive);
  step.assign(step_, step_.value() + 1, alive);
  return step.finish();
}

}  // namespace imprint::nn

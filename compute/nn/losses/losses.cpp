#include "compute/nn/losses/losses.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compute/base/text.h"
#include "compute/nn/losses/loss_checks.h"
#include "compute/tensor/build.h"
#include "compute/tensor/named_axes.h"

namespace imprint::nn {

using namespace tensor;

Tensor times_weight(const Tensor& losses, const Tensor& weight, std::string_view loss) {
  if (!losses.ok() || is_empty(weight)) return losses;
  if (!weight.ok()) return weight;
  const std::optional<Shape> wider = broadcast(losses.shape(), weight.shape());
  if (!wider || *wider != losses.shape())
    return failure(ErrorCode::shape_mismatch, loss,
                   text("found weight ", describe(weight),
                        ", expected a shape that broadcasts to the losses ", losses.shape().text()));
  return losses * weight;
}

Tensor weighted_loss(const Tensor& losses, const Tensor& weight, Reduction reduction, std::string_view loss) {
  return reduce_loss(times_weight(losses, weight, loss), reduction);
}

std::optional<Tensor> refuse_shapes(std::string_view loss, std::initializer_list<Tensor> operands) {
  for (const Tensor& operand : operands)
    if (!operand.ok()) return operand;
  const Tensor& first = *operands.begin();
  for (const Tensor& operand : operands)
    if (operand.shape() != first.shape())
      return failure(ErrorCode::shape_mismatch, loss,
                     text("found ", describe(first), " and ", describe(operand), ", expected equal shapes"));
  return std::nullopt;
}

Tensor reduce_loss(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::none:
      return losses;
    case Reduction::group_mean:
    case Reduction::batch_mean:
      break;
  }
  if (!losses.ok()) return losses;
  if (losses.rank() == 0)
    return failure(ErrorCode::shape_mismatch, "reduce_loss",
                   "found a scalar, expected [groups, ...] or [batch, ...]");
  if (reduction == Reduction::batch_mean) {
    const int batch[] = {0};
    return losses.extent(0) == 0 ? sum(losses) : sum(losses) * tensor::inverse_count(losses.shape(), batch);
  }
  Axes axes;
  for (int axis = 1; axis < losses.rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? losses : mean(losses, axes);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("mse_loss", {prediction, target})) return *refused;
  return weighted_loss(square(prediction - target), weight, reduction, "mse_loss");
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta, Reduction reduction,
                  const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("huber_loss", {prediction, target})) return *refused;
  const Tensor distance = abs(prediction - target);
  const Tensor inside = clamp_max(distance, delta);
  return weighted_loss(0.5f * square(inside) + Tensor(delta) * (distance - inside), weight, reduction,
                       "huber_loss");
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("l1_loss", {prediction, target})) return *refused;
  return weighted_loss(abs(prediction - target), weight, reduction, "l1_loss");
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta, Reduction reduction,
                      const Tensor& weight) {
  if (beta == 0) return l1_loss(prediction, target, reduction, weight);
  if (std::optional<Tensor> refused = refuse_shapes("smooth_l1_loss", {prediction, target})) return *refused;
  const Tensor distance = abs(prediction - target);
  const Tensor inside = clamp_max(distance, beta);
  return weighted_loss(Tensor(0.5 / beta) * square(inside) + (distance - inside), weight, reduction,
                       "smooth_l1_loss");
}

Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target, const PoissonOptions& options) {
  if (std::optional<Tensor> refused = refuse_shapes("poisson_nll_loss", {prediction, target}))
    return *refused;
  Tensor losses = options.log_input ? exp(prediction) - target * prediction
                                    : prediction - target * log(prediction + Tensor(options.epsilon));
  if (options.full) {
    const Tensor large = where(target > 1.0f, target, 1.0f);
    const Tensor stirling = large * log(large) - large + 0.5f * log(Tensor(2 * std::numbers::pi) * large);
    losses = losses + where(target > 1.0f, stirling, 0.0f);
  }
  return weighted_loss(losses, options.weight, options.reduction, "poisson_nll_loss");
}

Tensor gaussian_nll_loss(const Tensor& prediction, const Tensor& target, const Tensor& variance,
                         const GaussianOptions& options) {
  if (std::optional<Tensor> refused = refuse_shapes("gaussian_nll_loss", {prediction, target}))
    return *refused;
  if (!variance.ok()) return variance;
  const std::optional<Shape> wider = broadcast(prediction.shape(), variance.shape());
  if (!wider || *wider != prediction.shape())
    return failure(ErrorCode::shape_mismatch, "gaussian_nll_loss",
                   text("found variance ", describe(variance), ", expected a shape that broadcasts to ",
                        describe(prediction)));
  const Tensor spread = variance + stop_gradient(clamp_min(variance, options.epsilon) - variance);
  Tensor losses = 0.5f * (log(spread) + square(prediction - target) / spread);
  if (options.full) losses = losses + Tensor(0.5 * std::log(2 * std::numbers::pi));
  return weighted_loss(losses, options.weight, options.reduction, "gaussian_nll_loss");
}

Tensor hinge_loss(const Tensor& score, const Tensor& label, Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("hinge_loss", {score, label})) return *refused;
  return weighted_loss(relu(1.0f - label * score), weight, reduction, "hinge_loss");
}

Tensor hinge_embedding_loss(const Tensor& distance, const Tensor& label, double margin, Reduction reduction,
                            const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("hinge_embedding_loss", {distance, label}))
    return *refused;
  return weighted_loss(where(label > 0.0f, distance, relu(Tensor(margin) - distance)), weight, reduction,
                       "hinge_embedding_loss");
}

Tensor margin_ranking_loss(const Tensor& first, const Tensor& second, const Tensor& label, double margin,
                           Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("margin_ranking_loss", {first, second, label}))
    return *refused;
  return weighted_loss(relu(Tensor(margin) - label * (first - second)), weight, reduction,
                       "margin_ranking_loss");
}

}  // namespace imprint::nn

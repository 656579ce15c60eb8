#include "compute/nn/losses.h"

#include "compute/base/text.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

Tensor weighted(const Tensor& losses, const Tensor& weight, Reduction reduction, std::string_view name) {
  if (!losses.ok() || is_empty(weight)) return reduce_loss(losses, reduction);
  if (!weight.ok()) return weight;
  const std::optional<Shape> wider = broadcast(losses.shape(), weight.shape());
  if (!wider || *wider != losses.shape())
    return failure(ErrorCode::shape_mismatch, name,
                   text("found weight ", describe(weight),
                        ", expected a shape that broadcasts to the losses ", losses.shape().text()));
  return reduce_loss(losses * weight, reduction);
}

std::optional<Tensor> refuse_shapes(std::string_view name, const Tensor& prediction, const Tensor& target) {
  if (!prediction.ok()) return prediction;
  if (!target.ok()) return target;
  if (prediction.shape() == target.shape()) return std::nullopt;
  return failure(ErrorCode::shape_mismatch, name,
                 text("found prediction ", describe(prediction), " and target ", describe(target),
                      ", expected equal shapes"));
}

}  // namespace

Tensor reduce_loss(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::none:
      return losses;
    case Reduction::group_mean:
      break;
  }
  if (!losses.ok()) return losses;
  if (losses.rank() == 0)
    return failure(ErrorCode::shape_mismatch, "reduce_loss", "found a scalar, expected [groups, ...]");
  Axes axes;
  for (int axis = 1; axis < losses.rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? losses : mean(losses, axes);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("mse_loss", prediction, target)) return *refused;
  return weighted(square(prediction - target), weight, reduction, "mse_loss");
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta, Reduction reduction,
                  const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("huber_loss", prediction, target)) return *refused;
  const Tensor distance = abs(prediction - target);
  const Tensor inside = clamp_max(distance, delta);
  return weighted(0.5f * square(inside) + Tensor(delta) * (distance - inside), weight, reduction,
                  "huber_loss");
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, Reduction reduction, const Tensor& weight) {
  if (!logits.ok()) return logits;
  if (!target.ok()) return target;
  Shape rows = target.shape();
  const bool fits = target.dtype() == DType::int32 && logits.rank() == rows.rank() + 1;
  if (fits) rows.append(logits.extent(-1));
  if (!fits || rows != logits.shape())
    return failure(ErrorCode::shape_mismatch, "cross_entropy",
                   text("found logits ", describe(logits), " and ", dtype_name(target.dtype()), " target ",
                        describe(target), ", expected [..., classes] and int32 [...]"));
  const Tensor chosen = where(one_hot(target, logits.extent(-1)) > 0.0f, log_softmax(logits), 0.0f);
  return weighted(-sum(chosen, {-1}), weight, reduction, "cross_entropy");
}

}  // namespace imprint::nn

// Margins between the scores of classes.

#include "compute/base/text.h"
#include "compute/nn/losses/loss_checks.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

std::optional<Tensor> refuse_classes(std::string_view loss, const Tensor& scores, const Tensor& target,
                                     const Shape& expected) {
  if (!scores.ok() || !target.ok()) return scores.ok() ? target : scores;
  if (scores.rank() >= 1 && scores.dtype() == DType::float32 && target.dtype() == DType::int32 &&
      target.shape() == expected)
    return std::nullopt;
  return failure(ErrorCode::shape_mismatch, loss,
                 text("found scores ", describe(scores), " and target ", describe(target),
                      ", expected float32 [..., classes] and int32 ", expected.text()));
}

Shape rows_of(const Tensor& scores) {
  return scores.ok() && scores.rank() > 0
             ? Shape(scores.shape().extents().first(static_cast<std::size_t>(scores.rank() - 1)))
             : Shape();
}

Tensor share(const Tensor& scores) { return Tensor(1.0 / static_cast<double>(scores.extent(-1))); }

}  // namespace

Tensor multi_margin_loss(const Tensor& scores, const Tensor& target, double margin, double p,
                         Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_classes("multi_margin_loss", scores, target, rows_of(scores)))
    return *refused;
  if (p != 1 && p != 2)
    return failure(ErrorCode::invalid_argument, "multi_margin_loss",
                   text("found p ", p, ", expected 1 or 2"));
  const Tensor right = gather(scores, -1, unsqueeze(target, -1));
  Tensor margins = relu(Tensor(margin) - right + scores);
  if (p == 2) margins = square(margins);
  const Tensor others = not_equal(arange(scores.extent(-1)), unsqueeze(target, -1));
  return weighted_loss(sum(where(others, margins, 0.0f), {-1}) * share(scores), weight, reduction,
                       "multi_margin_loss");
}

Tensor multilabel_margin_loss(const Tensor& scores, const Tensor& target, Reduction reduction,
                              const Tensor& weight) {
  if (std::optional<Tensor> refused =
          refuse_classes("multilabel_margin_loss", scores, target, scores.shape()))
    return *refused;
  // Targets count up to the first negative one.
  const Tensor counts = equal(cumsum(cast(target < 0, DType::int32), -1), 0);
  const Tensor used = where(counts, target, -1);
  const Tensor is_label = any(equal(unsqueeze(used, -1), arange(scores.extent(-1))), {-2});
  const Tensor margins = relu(1.0f - unsqueeze(gather(scores, -1, used), -1) + unsqueeze(scores, -2));
  const Tensor pairs = logical_and(unsqueeze(counts, -1), unsqueeze(logical_not(is_label), -2));
  return weighted_loss(sum(where(pairs, margins, 0.0f), {-2, -1}) * share(scores), weight, reduction,
                       "multilabel_margin_loss");
}

Tensor multilabel_soft_margin_loss(const Tensor& scores, const Tensor& target, Reduction reduction,
                                   const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("multilabel_soft_margin_loss", {scores, target}))
    return *refused;
  if (scores.rank() < 1)
    return failure(ErrorCode::shape_mismatch, "multilabel_soft_margin_loss",
                   text("found ", describe(scores), ", expected [..., classes]"));
  return weighted_loss(mean(binary_cross_entropy_with_logits(scores, target, Reduction::none), {-1}), weight,
                       reduction, "multilabel_soft_margin_loss");
}

Tensor soft_margin_loss(const Tensor& score, const Tensor& label, Reduction reduction, const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("soft_margin_loss", {score, label})) return *refused;
  return weighted_loss(softplus(-label * score), weight, reduction, "soft_margin_loss");
}

}  // namespace imprint::nn

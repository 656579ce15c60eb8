#include <limits>
#include <vector>

#include "compute/base/text.h"
#include "compute/nn/losses/loss_checks.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

// The target as int32. Labels of 8, 16 and 64 bits are usual in files.
Tensor class_indices(const Tensor& target) { return as_indices(target); }

// 0 for a class and for the number that is ignored, else NaN: a wrong label must not train in silence. It is
// added to a loss, so gradients are as without it.
Tensor nan_outside(const Tensor& target, std::int64_t classes, std::int32_t ignored) {
  const Tensor is_class = logical_and(target >= 0, target < static_cast<std::int32_t>(classes));
  return where(logical_or(is_class, equal(target, ignored)), 0.0f,
               Tensor(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction, const Tensor& weight) {
  const Tensor target = class_indices(labels);
  if (!logits.ok()) return logits;
  if (!target.ok()) return target;
  Shape rows = target.shape();
  const bool fits = target.dtype() == DType::int32 && logits.rank() == rows.rank() + 1;
  if (fits) rows.append(logits.extent(-1));
  if (!fits || rows != logits.shape())
    return failure(ErrorCode::shape_mismatch, "cross_entropy",
                   text("found logits ", describe(logits), " and ", dtype_name(target.dtype()), " target ",
                        describe(target), ", expected [..., classes] and int32 [...]"));
  const std::int64_t classes = logits.extent(-1);
  const Tensor chosen = where(one_hot(target, classes) > 0.0f, log_softmax(logits), 0.0f);
  const Tensor loss = -sum(chosen, {-1}) + nan_outside(target, classes, ClassLossOptions().ignore_index);
  return weighted_loss(loss, weight, reduction, "cross_entropy");
}

namespace {

// One loss per row, and what the row adds to the divisor of a mean.
struct ClassRows {
  Tensor loss, share;
};

ClassRows soft_rows(const Tensor& log_probabilities, const Tensor& target, const ClassLossOptions& options,
                    const Tensor& class_weight) {
  const auto classes = static_cast<double>(log_probabilities.extent(-1));
  const Tensor wanted = options.label_smoothing == 0 ? target
                                                     : target * Tensor(1 - options.label_smoothing) +
                                                           Tensor(options.label_smoothing / classes);
  // A choice at -infinity that the target excludes costs nothing.
  const Tensor excluded = logical_and(is_inf(log_probabilities), equal(wanted, 0.0f));
  Tensor terms = wanted * where(excluded, 0.0f, log_probabilities);
  if (class_weight.ok()) terms = terms * class_weight;
  const Tensor loss = -sum(terms, {-1});
  return {loss, Tensor()};
}

ClassRows hard_rows(const Tensor& log_probabilities, const Tensor& target, const ClassLossOptions& options,
                    const Tensor& class_weight) {
  const std::int64_t classes = log_probabilities.extent(-1);
  const Tensor chosen = logical_and(one_hot(target, classes) > 0.0f,
                                    unsqueeze(not_equal(target, static_cast<int>(options.ignore_index)), -1));
  const Tensor weighted = class_weight.ok() ? log_probabilities * class_weight : log_probabilities;
  const Tensor share = sum(where(chosen, class_weight.ok() ? class_weight : Tensor(1.0f), 0.0f), {-1});
  Tensor loss =
      -sum(where(chosen, weighted, 0.0f), {-1}) + nan_outside(target, classes, options.ignore_index);
  if (options.label_smoothing != 0) {
    const Tensor even = where(any(chosen, {-1}), -sum(weighted, {-1}), 0.0f);
    loss = Tensor(1 - options.label_smoothing) * loss +
           Tensor(options.label_smoothing / static_cast<double>(classes)) * even;
  }
  return {loss, share};
}

// losses / shares, both summed over the axes of a mean.
Tensor mean_by_share(const Tensor& losses, const Tensor& shares, Reduction reduction) {
  Axes axes;
  for (int axis = reduction == Reduction::group_mean ? 1 : 0; axis < losses.rank(); ++axis)
    axes.push_back(axis);
  if (axes.empty()) return losses / where(equal(shares, 0.0f), 1.0f, shares);
  const Tensor total = sum(shares, axes);
  return sum(losses, axes) / where(equal(total, 0.0f), 1.0f, total);
}

Tensor class_loss(std::string_view name, const Tensor& log_probabilities, const Tensor& labels,
                  const ClassLossOptions& options) {
  const Tensor target = class_indices(labels);
  if (!log_probabilities.ok()) return log_probabilities;
  if (!target.ok()) return target;
  const Shape& full = log_probabilities.shape();
  Shape rows = target.shape();
  const bool soft = target.dtype() == DType::float32;
  if (!soft && full.rank() > 0) rows.append(full[full.rank() - 1]);
  if (full.rank() == 0 || rows != full || target.dtype() == DType::boolean)
    return failure(
        ErrorCode::shape_mismatch, name,
        text("found ", describe(log_probabilities), " and ", dtype_name(target.dtype()), " target ",
             describe(target), ", expected [..., classes] and int32 [...] or float32 [..., classes]"));
  if (options.label_smoothing < 0 || options.label_smoothing > 1)
    return failure(ErrorCode::invalid_argument, name,
                   text("found label smoothing ", options.label_smoothing, ", expected 0 to 1"));
  if (!is_empty(options.class_weight)) {
    if (!options.class_weight.ok()) return options.class_weight;
    if (options.class_weight.shape() != Shape{full[full.rank() - 1]})
      return failure(ErrorCode::shape_mismatch, name,
                     text("found class weight ", describe(options.class_weight), ", expected [",
                          full[full.rank() - 1], "], one number per class"));
  }
  const ClassRows found = soft ? soft_rows(log_probabilities, target, options, options.class_weight)
                               : hard_rows(log_probabilities, target, options, options.class_weight);
  const bool is_mean = options.reduction == Reduction::mean || options.reduction == Reduction::group_mean;
  if (soft || !is_mean) return weighted_loss(found.loss, options.weight, options.reduction, name);
  if (options.reduction == Reduction::group_mean && found.loss.ok() && found.loss.rank() == 0)
    return reduce_loss(found.loss, options.reduction);  // carries the error
  const Tensor losses = times_weight(found.loss, options.weight, name);
  return losses.ok() ? mean_by_share(losses, found.share, options.reduction) : losses;
}

// log x, with log 0 = -100 and no gradient there.
Tensor bounded_log(const Tensor& x) {
  const Tensor positive = x > 0.0f;
  return where(positive, log(where(positive, x, 1.0f)), -100.0f);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const ClassLossOptions& options) {
  return class_loss("cross_entropy", log_softmax(logits), target, options);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const ClassLossOptions& options) {
  return class_loss("nll_loss", log_probabilities, target, options);
}

Tensor kl_divergence(const Tensor& log_prediction, const Tensor& target, bool log_target, Reduction reduction,
                     const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("kl_divergence", {log_prediction, target}))
    return *refused;
  Tensor losses;
  if (log_target) {
    losses = exp(target) * (target - log_prediction);
  } else {
    const Tensor positive = target > 0.0f;
    losses = where(positive, target * (log(where(positive, target, 1.0f)) - log_prediction), 0.0f);
  }
  return weighted_loss(losses, weight, reduction, "kl_divergence");
}

Tensor binary_cross_entropy(const Tensor& probability, const Tensor& target, Reduction reduction,
                            const Tensor& weight) {
  if (std::optional<Tensor> refused = refuse_shapes("binary_cross_entropy", {probability, target}))
    return *refused;
  const Tensor losses =
      -(target * bounded_log(probability) + (1.0f - target) * bounded_log(1.0f - probability));
  return weighted_loss(losses, weight, reduction, "binary_cross_entropy");
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction,
                                        const Tensor& weight, const Tensor& positive_weight) {
  if (std::optional<Tensor> refused = refuse_shapes("binary_cross_entropy_with_logits", {logits, target}))
    return *refused;
  const Tensor miss = -log_sigmoid(logits);  // of a positive target
  const Tensor share = is_empty(positive_weight) ? Tensor(1.0f) : 1.0f + (positive_weight - 1.0f) * target;
  return weighted_loss((1.0f - target) * logits + share * miss, weight, reduction,
                       "binary_cross_entropy_with_logits");
}

Tensor focal_loss(const Tensor& logits, const Tensor& target, const FocalOptions& options) {
  if (std::optional<Tensor> refused = refuse_shapes("focal_loss", {logits, target})) return *refused;
  const Tensor p = sigmoid(logits);
  const Tensor miss = p * (1.0f - target) + (1.0f - p) * target;  // 1 - q
  Tensor losses = (1.0f - target) * logits - log_sigmoid(logits);
  losses = losses * (options.gamma == 2 ? square(miss) : pow(miss, Tensor(options.gamma)));
  if (options.alpha >= 0)
    losses = losses * (Tensor(options.alpha) * target + Tensor(1 - options.alpha) * (1.0f - target));
  return weighted_loss(losses, options.weight, options.reduction, "focal_loss");
}

Tensor dice_loss(const Tensor& probability, const Tensor& target, const DiceOptions& options) {
  if (std::optional<Tensor> refused = refuse_shapes("dice_loss", {probability, target})) return *refused;
  if (probability.rank() < 2)
    return failure(ErrorCode::shape_mismatch, "dice_loss",
                   text("found ", describe(probability), ", expected [batch, ...]"));
  Axes axes;
  for (int axis = 1; axis < probability.rank(); ++axis) axes.push_back(axis);
  const Tensor both = sum(probability * target, axes);
  const Tensor either =
      options.squares ? sum(square(probability) + square(target), axes) : sum(probability + target, axes);
  const Tensor smooth(options.smooth);
  return reduce_loss(1.0f - (2.0f * both + smooth) / (either + smooth), options.reduction);
}

}  // namespace imprint::nn

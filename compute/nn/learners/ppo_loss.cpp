#include "compute/nn/learners/ppo_loss.h"

namespace imprint::nn {
namespace {

// clamp with bounds that may be tensors.
Tensor between(const Tensor& x, const Tensor& low, const Tensor& high) {
  const Tensor raised = where(x < low, low, x);
  return where(raised > high, high, raised);
}

}  // namespace

PpoLoss ppo_loss(const PpoEvaluation& now, const PpoBatch& batch, const PpoLossOptions& options) {
  const Tensor log_ratio = now.log_probability - batch.log_probability;
  const Tensor ratio = exp(log_ratio);
  const Tensor bounded = between(ratio, 1.0f - options.clip_range, 1.0f + options.clip_range);

  const auto mean_of = [&](const Tensor& rows) {
    if (options.groups == 0) return mean(rows);
    return mean(reshape(rows, {options.groups, rows.extent(0) / options.groups}), {1});
  };

  PpoLoss loss;
  loss.policy = neg(mean_of(minimum(ratio * batch.advantage, bounded * batch.advantage)));
  Tensor error = square(now.value - batch.value_target);
  if (options.clip_value) {
    const Tensor held =
        batch.value + between(now.value - batch.value, -options.clip_range, options.clip_range);
    error = maximum(error, square(held - batch.value_target));
  }
  loss.value = mean_of(error);
  loss.entropy = mean_of(now.entropy);
  loss.divergence = mean_of((ratio - 1.0f) - log_ratio);
  loss.clipped = mean_of(cast(not_equal(ratio, bounded), DType::float32));
  loss.total = loss.policy + loss.value * Tensor(options.value_coefficient) -
               loss.entropy * Tensor(options.entropy_coefficient);
  return loss;
}

PpoLoss ppo_loss(const Tensor& logits, const Tensor& values, const PpoBatch& batch,
                 const PpoLossOptions& options) {
  const Tensor log_probabilities = log_softmax(logits, -1);
  PpoEvaluation now;
  now.log_probability = squeeze(gather(log_probabilities, 1, unsqueeze(batch.action, 1)), 1);
  now.entropy = neg(sum(exp(log_probabilities) * log_probabilities, {1}));
  now.value = values;
  return ppo_loss(now, batch, options);
}

}  // namespace imprint::nn

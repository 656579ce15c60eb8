#include "compute/nn/ppo_loss.h"

namespace imprint::nn {

PpoLoss ppo_loss(const Tensor& logits, const Tensor& values, const PpoBatch& batch, const PpoLossOptions& options) {
  const Tensor log_probabilities = log_softmax(logits, -1);
  const Tensor chosen = squeeze(gather(log_probabilities, 1, unsqueeze(batch.action, 1)), 1);
  const Tensor log_ratio = chosen - batch.log_probability;
  const Tensor ratio = exp(log_ratio);
  const Tensor bounded = clamp(ratio, 1 - options.clip_range, 1 + options.clip_range);

  PpoLoss loss;
  loss.policy = neg(mean(minimum(ratio * batch.advantage, bounded * batch.advantage)));
  loss.value = mean(square(values - batch.value_target));
  loss.entropy = neg(mean(sum(exp(log_probabilities) * log_probabilities, {1})));
  loss.divergence = mean((ratio - 1.0f) - log_ratio);
  loss.clipped = mean(cast(not_equal(ratio, bounded), DType::float32));
  loss.total = loss.policy + loss.value * static_cast<float>(options.value_coefficient) - loss.entropy * static_cast<float>(options.entropy_coefficient);
  return loss;
}

}  // namespace imprint::nn

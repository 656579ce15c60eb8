#include "compute/nn/advantage.h"

namespace imprint::nn {

Advantages generalised_advantages(const Trajectories& trajectories, const AdvantageOptions& options) {
  const Tensor delta =
      trajectories.reward + Tensor(options.discount) * trajectories.next_value - trajectories.value;
  const Tensor factors = Tensor(options.discount * options.decay) * trajectories.continues;
  Advantages result;
  result.advantage = linear_recurrence(delta, factors, 0, true);
  result.value_target = result.advantage + trajectories.value;
  return result;
}

Tensor discounted_returns(const Tensor& reward, const Tensor& follows, double discount) {
  const Tensor kept = narrow(follows, 1, 0, follows.extent(1) - 1);  // of the return before each row
  return linear_recurrence(reward, Tensor(discount) * concat({zeros({reward.extent(0), 1}), kept}, 1), 1);
}

Tensor standardised(const Tensor& x) {
  if (!x.ok() || x.extent(-1) == 1) return x;
  return (x - mean(x, {-1}, true)) / (sqrt(variance(x, {-1}, true)) + Tensor(1e-8));
}

}  // namespace imprint::nn

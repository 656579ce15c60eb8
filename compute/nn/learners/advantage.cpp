#include "compute/nn/learners/advantage.h"

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

Advantages vtrace_advantages(const Trajectories& trajectories, const Tensor& log_ratio,
                             const VtraceOptions& options) {
  constexpr double kMostLog = 20;  // beyond it both bounds hold, or the ratio is nothing
  const Tensor discount(options.discount), ratio = exp(clamp(log_ratio, -kMostLog, kMostLog));
  const Tensor rho = minimum(ratio, Tensor(options.most_ratio));
  const Tensor error = trajectories.reward + discount * trajectories.next_value - trajectories.value;
  const Tensor kept = discount * trajectories.continues;
  const Tensor traces = Tensor(options.decay) * minimum(ratio, Tensor(options.most_trace));
  const Tensor correction = linear_recurrence(rho * error, kept * traces, 0, true);
  const Tensor last = narrow(correction, 0, 0, 1);
  const std::int64_t steps = correction.extent(0);
  const Tensor later =
      steps > 1 ? concat({narrow(correction, 0, 1, steps - 1), zeros_like(last)}, 0) : zeros_like(last);
  return {rho * (error + kept * later), trajectories.value + correction};
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

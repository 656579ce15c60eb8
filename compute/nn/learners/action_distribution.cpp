#include "compute/nn/learners/action_distribution.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

// Far below any logit, but finite: exp gives 0, and its product with 0 is 0.
constexpr double kClosed = -1e8;

Tensor added(const Tensor& sum, const Tensor& term) { return is_empty(sum) ? term : sum + term; }

}  // namespace

std::int64_t ActionSpace::choices() const {
  return std::accumulate(branches.begin(), branches.end(), std::int64_t{0});
}

ActionDistribution::ActionDistribution(ActionSpace space, const Tensor& outputs, const Tensor& log_deviation,
                                       const Tensor& mask)
    : space_(std::move(space)), log_deviation_(log_deviation) {
  Tensor logits = space_.branches.empty() ? Tensor() : narrow(outputs, 1, 0, space_.choices());
  if (!is_empty(mask) && !space_.branches.empty())
    logits = where(mask, logits, full(logits.shape(), kClosed));
  std::int64_t first = 0;
  for (const std::int64_t choices : space_.branches) {
    logits_.push_back(narrow(logits, 1, first, choices));
    first += choices;
  }
  if (space_.continuous > 0) mean_ = narrow(outputs, 1, first, space_.continuous);
}

Actions ActionDistribution::sample(const Tensor& generator, std::uint32_t stream) const {
  Actions actions;
  std::vector<Tensor> chosen;
  for (const Tensor& logits : logits_) chosen.push_back(random_categorical(generator, logits, stream++));
  if (!chosen.empty()) actions.discrete = stack(chosen, 1);
  if (space_.continuous > 0)
    actions.continuous = mean_ + exp(log_deviation_) * random_normal(generator, mean_.shape(), stream);
  return actions;
}

Actions ActionDistribution::most_likely() const {
  Actions actions;
  std::vector<Tensor> chosen;
  for (const Tensor& logits : logits_) chosen.push_back(argmax(logits, -1));
  if (!chosen.empty()) actions.discrete = stack(chosen, 1);
  if (space_.continuous > 0) actions.continuous = mean_;
  return actions;
}

Tensor ActionDistribution::log_probability(const Actions& actions) const {
  Tensor total;
  for (std::size_t b = 0; b < logits_.size(); ++b) {
    const Tensor chosen = narrow(actions.discrete, 1, static_cast<std::int64_t>(b), 1);
    total = added(total, squeeze(gather(log_softmax(logits_[b], -1), 1, chosen), 1));
  }
  if (space_.continuous > 0) {
    const Tensor apart = (actions.continuous - mean_) * exp(-log_deviation_);
    const double constant = 0.5 * std::log(2 * std::numbers::pi);
    total = added(total, -sum(0.5f * square(apart) + log_deviation_ + Tensor(constant), {1}));
  }
  return total;
}

Tensor ActionDistribution::entropy() const {
  Tensor total;
  for (const Tensor& logits : logits_) {
    const Tensor log_probabilities = log_softmax(logits, -1);
    total = added(total, -sum(exp(log_probabilities) * log_probabilities, {1}));
  }
  if (space_.continuous > 0) {
    const double constant = 0.5 * std::log(2 * std::numbers::pi * std::numbers::e);
    const Tensor parts = log_deviation_ + Tensor(constant);
    total =
        added(total, parts.rank() == 2 ? sum(parts, {1}) : expand(sum(parts, {0}, true), {mean_.extent(0)}));
  }
  return total;
}

}  // namespace imprint::nn

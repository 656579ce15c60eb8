#include "compute/nn/learners/running_moments.h"

namespace imprint::nn {

Tensor normalise(const Tensor& x, const Moments& moments, double limit) {
  return clamp((x - moments.mean) / sqrt(moments.variance + Tensor(1e-8)), -limit, limit);
}

RunningMoments::RunningMoments(const std::string& name, std::int64_t extent) {
  mean_ = Variable::zeros(name + ".mean", {extent});
  variance_ =
      Variable(name + ".variance", {extent}, std::vector<float>(static_cast<std::size_t>(extent), 1.0f));
  count_ = Variable(name + ".count", {1}, std::vector<float>{1e-4f});  // avoids a division by zero
  state_.add("mean", mean_);
  state_.add("variance", variance_);
  state_.add("count", count_);
}

Moments RunningMoments::now() const { return {mean_.value(), variance_.value(), count_.value()}; }

Moments RunningMoments::with(const Tensor& rows) const {
  const Tensor fresh_mean = mean(rows, {0}), fresh_variance = variance(rows, {0}, false, 0);
  const Tensor fresh_count(static_cast<double>(rows.extent(0)));
  const Tensor total = count_.value() + fresh_count;
  const Tensor share = fresh_count / total;
  const Tensor apart = fresh_mean - mean_.value();
  const Tensor is_sound = logical_and(is_finite(fresh_mean), is_finite(fresh_variance));
  Moments moments;
  moments.mean = where(is_sound, mean_.value() + apart * share, mean_.value());
  moments.variance = where(
      is_sound,
      variance_.value() * (1.0f - share) + fresh_variance * share + square(apart) * share * (1.0f - share),
      variance_.value());
  moments.count = total;
  return moments;
}

void RunningMoments::assign(const Moments& moments, std::vector<Update>& updates) const {
  updates.push_back(Update::assign(mean_, moments.mean));
  updates.push_back(Update::assign(variance_, moments.variance));
  updates.push_back(Update::assign(count_, moments.count));
}

}  // namespace imprint::nn

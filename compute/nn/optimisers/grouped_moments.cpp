#include "compute/nn/optimisers/grouped_moments.h"

namespace imprint::nn {

GroupedMoments::GroupedMoments(const std::string& name, std::int64_t groups, std::int64_t extent) {
  mean_ = Variable::zeros(name + ".mean", {groups, 1, extent});
  variance_ = Variable(name + ".variance", {groups, 1, extent},
                       std::vector<float>(static_cast<std::size_t>(groups * extent), 1.0f));
  // Almost no weight, but no division by zero.
  count_ =
      Variable(name + ".count", {groups, 1, 1}, std::vector<float>(static_cast<std::size_t>(groups), 1e-4f));
  state_.add("mean", mean_);
  state_.add("variance", variance_);
  state_.add("count", count_);
}

GroupedMoments::Fresh GroupedMoments::of(const Tensor& rows) {
  return {mean(rows, {1}, true), variance(rows, {1}, true, 0), static_cast<double>(rows.extent(1))};
}

GroupedMoments::Values GroupedMoments::grown(const Fresh& fresh, const Tensor& active) const {
  const Tensor per_brain = unsqueeze(unsqueeze(active, 1), 2);
  const Tensor &fresh_mean = fresh.mean, &fresh_variance = fresh.variance;
  const Tensor old_mean = mean_.value(), old_variance = variance_.value(), old_count = count_.value();
  const Tensor rows_count(fresh.rows);
  const Tensor total = old_count + rows_count, share = rows_count / total, apart = fresh_mean - old_mean;
  const Tensor grows = logical_and(per_brain, logical_and(is_finite(fresh_mean), is_finite(fresh_variance)));
  Values values;
  values.mean = where(grows, old_mean + apart * share, old_mean);
  values.variance = where(
      grows, old_variance * (1.0f - share) + fresh_variance * share + square(apart) * share * (1.0f - share),
      old_variance);
  // Bounded, so that the moments follow a game that changes.
  values.count = where(per_brain, minimum(total, Tensor(1e6)), old_count);
  return values;
}

void GroupedMoments::assign(const Values& values, std::vector<Update>& updates) const {
  updates.push_back(Update::assign(mean_, values.mean));
  updates.push_back(Update::assign(variance_, values.variance));
  updates.push_back(Update::assign(count_, values.count));
}

}  // namespace imprint::nn

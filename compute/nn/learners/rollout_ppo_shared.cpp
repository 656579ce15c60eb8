// RolloutPpo's update by several processes at once. In a turn of a part each process leaves its share of a
// mean in a variable, and ProgramSequence::all_reduce makes it the mean of all:
//
//   total means, total variances   of new observations and returns
//   prepare                        as of one process, with those
//   total spreads, standard        the mean and the deviation of each minibatch's advantages
//   gradient, minibatch            epochs * steps / minibatch times, in turn
//   publish                        as of one process
//
// All processes then have equal weights, bit by bit, as long as all_reduce gives all of them the same bits.

#include <algorithm>
#include <utility>

#include "compute/nn/learners/rollout_ppo.h"
#include "compute/tensor/build.h"

namespace imprint::nn {

using namespace tensor;

namespace {

constexpr std::int64_t kSharedMetrics = 5;  // the first of PpoMetric

}  // namespace

void RolloutPpo::make_totals() {
  const std::int64_t brains = options_.brains(), count = minibatches();
  const std::int64_t columns =
      (options_.normalise_observations ? options_.observations : 0) + (options_.normalise_rewards ? 1 : 0);
  if (columns > 0) {
    total_mean_ = work("total_mean", {brains, 1, columns});
    total_variance_ = work("total_variance", {brains, 1, columns});
  }
  if (options_.standardise_advantages) {
    total_advantage_ = work("total_advantage", {brains, count, 1});
    total_spread_ = work("total_spread", {brains, count, 1});
  }
  for (const Parameter& parameter : learned_.parameters)
    total_gradients_.push_back(work("total_gradient." + parameter.name, parameter.value().shape()));
  total_metrics_ = work("total_metrics", {brains, kSharedMetrics});
}

Result<ProgramSequence> RolloutPpo::shared_update(const RolloutSource& source, const Tensor& active) const {
  ProgramSequence sequence;
  const RolloutRows rollout = source.all();
  const auto add = [&](ProgramDescription description, const Variable& summed = {}) {
    sequence.parts.push_back({std::move(description), 1});
    if (summed.ok()) sequence.parts.back().summed = {summed};
  };
  if (total_mean_.ok()) {
    add(total_means(rollout), total_mean_);
    add(total_variances(rollout), total_variance_);
  }
  add(prepare(rollout, active), total_advantage_);
  if (total_advantage_.ok()) {
    add(total_spreads(), total_spread_);
    add(total_standard());
  }
  IMPRINT_ASSIGN(ProgramDescription gradient, total_gradient(source));
  IMPRINT_ASSIGN(ProgramDescription one, step(total_minibatch(), active));
  sequence.rounds.push_back({sequence.parts.size(), 2, minibatches()});
  add(std::move(gradient));
  // The last layers' gradients are known first.
  std::vector<Variable>& summed = sequence.parts.back().summed;
  summed = {total_metrics_};
  summed.insert(summed.end(), total_gradients_.rbegin(), total_gradients_.rend());
  add(std::move(one));
  add(publish(active));
  return sequence;
}

Tensor RolloutPpo::moment_rows(const RolloutRows& rollout) const {
  std::vector<Tensor> rows;
  if (options_.normalise_observations) rows.push_back(rollout.observation);
  if (options_.normalise_rewards)
    rows.push_back(unsqueeze(discounted_returns(rollout.reward, rollout.follows, options_.discount), 2));
  return rows.size() == 1 ? rows[0] : concat(rows, 2);
}

ProgramDescription RolloutPpo::total_means(const RolloutRows& rollout) const {
  ProgramDescription program{.name = "total means"};
  const Tensor share(1.0 / static_cast<double>(options_.process_count));
  program.updates = {Update::assign(total_mean_, mean(moment_rows(rollout), {1}, true) * share)};
  return program;
}

ProgramDescription RolloutPpo::total_variances(const RolloutRows& rollout) const {
  ProgramDescription program{.name = "total variances"};
  const Tensor share(1.0 / static_cast<double>(options_.process_count));
  const Tensor apart = moment_rows(rollout) - total_mean_.value();
  program.updates = {Update::assign(total_variance_, mean(square(apart), {1}, true) * share)};
  return program;
}

ProgramDescription RolloutPpo::total_spreads() const {
  ProgramDescription program{.name = "total spreads"};
  const Tensor share(1.0 / static_cast<double>(options_.process_count));
  const Tensor advantage =
      reshape(advantage_.value(), {options_.brains(), minibatches(), options_.minibatch});
  program.updates = {
      Update::assign(total_spread_, mean(square(advantage - total_advantage_.value()), {2}, true) * share)};
  return program;
}

// As standard() does for one process.
ProgramDescription RolloutPpo::total_standard() const {
  ProgramDescription program{.name = "standard"};
  const double rows = static_cast<double>(options_.minibatch * options_.process_count);
  const Tensor advantage =
      reshape(advantage_.value(), {options_.brains(), minibatches(), options_.minibatch});
  const Tensor deviation = sqrt(total_spread_.value() * Tensor(rows / (rows - 1)));
  const Tensor by =
      options_.normalise_rewards ? maximum(deviation, Tensor(kLeastSpread)) : deviation + Tensor(1e-8);
  program.updates = {
      Update::assign(advantage_, reshape((advantage - total_advantage_.value()) / by, advantage_.shape()))};
  return program;
}

Result<ProgramDescription> RolloutPpo::total_gradient(const RolloutSource& source) const {
  IMPRINT_ASSIGN(const Minibatch own, minibatch(source, Tensor()));
  const PpoLoss& loss = own.loss;
  const Tensor metrics = stack({loss.policy, loss.value, loss.entropy, loss.divergence, loss.clipped}, 1);
  ProgramDescription program{.name = "gradient"};
  const Tensor share(1.0 / static_cast<double>(options_.process_count));
  for (std::size_t i = 0; i < own.gradients.size(); ++i)
    program.updates.push_back(Update::assign(total_gradients_[i], own.gradients[i] * share));
  program.updates.push_back(Update::assign(total_metrics_, metrics * share));
  return program;
}

RolloutPpo::Minibatch RolloutPpo::total_minibatch() const {
  Minibatch total;
  for (const Variable& gradient : total_gradients_) total.gradients.push_back(gradient.value());
  const auto metric = [&](PpoMetric of) {
    return squeeze(narrow(total_metrics_.value(), 1, static_cast<std::int64_t>(of), 1), 1);
  };
  total.loss.policy = metric(PpoMetric::policy_loss);
  total.loss.value = metric(PpoMetric::value_loss);
  total.loss.entropy = metric(PpoMetric::entropy);
  total.loss.divergence = metric(PpoMetric::divergence);
  total.loss.clipped = metric(PpoMetric::clipped_share);
  return total;
}

}  // namespace imprint::nn

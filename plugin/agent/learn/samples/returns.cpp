#include "plugin/agent/learn/samples/returns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace imprint::agent {
namespace {

constexpr double kFallenShare = 0.5;  // of what was learned
constexpr double kNewBest = 0.1;      // as much better is worth a copy of the brain

template <std::size_t N>
Returns::Average average_of(const std::array<double, N>& values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / N;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / (N - 1)};
}

}  // namespace

Returns::Returns(const BrainSpec& spec)
    : spec_(spec), agents_(spec.agent_capacity()), brains_(spec.brain_count) {}

void Returns::acted(std::uint32_t agent) {
  // The step that begins now earns later: a span ends before it.
  Agent& own = agents_[agent];
  if (!has_episodes_ && own.steps == kSpan) {
    if (heard) heard(own.sum, own.steps);
    add(agent / spec_.agents_per_brain, own.sum);
    own = {};
  }
  ++own.steps;
}

void Returns::ended(std::uint32_t agent) {
  // Spans are no episodes: what was found of them says nothing.
  if (!std::exchange(has_episodes_, true)) forget();
  const Agent own = std::exchange(agents_[agent], {});
  if (own.steps == 0) return;
  if (heard) heard(own.sum, own.steps);
  add(agent / spec_.agents_per_brain, own.sum);
}

void Returns::forget() { std::ranges::fill(brains_, Earned{}); }

void Returns::add(std::uint32_t brain, double earned) {
  Earned& own = brains_[brain];
  own.newest_ones[own.count++ % kCount] = earned;
  if (own.count >= kCount) judge(own);
}

double Returns::error_of(const Earned& own, const Average& one, const Average& other) {
  const double usual = own.variances / static_cast<double>(own.judged);
  return std::sqrt((std::max(one.variance, usual) + std::max(other.variance, usual)) / kCount);
}

void Returns::judge(Earned& own) {
  own.newest = average_of(own.newest_ones);
  own.variances += own.newest.variance;
  if (own.judged++ == 0) own.first = own.best = own.newest;
  const double learned = own.best.mean - own.first.mean;
  if (own.newest.mean > own.best.mean) own.best = own.newest;
  const double now = own.newest.mean;
  if (std::exchange(own.tried, false) && own.best.mean - now > kFallenShare * learned) {
    own.first = own.best = own.newest;
    own.has_kept = false;
  }
  own.is_best = own.newest.mean >= own.best.mean && learned > kErrors * error_of(own, own.best, own.first) &&
                (!own.has_kept || now > own.kept + kNewBest * learned);
  own.fell =
      learned > kErrors * error_of(own, own.best, own.first) &&
      own.best.mean - now > std::max(kFallenShare * learned, kErrors * error_of(own, own.best, own.newest));
}

bool Returns::take_best(std::uint32_t brain) {
  Earned& own = brains_[brain];
  if (!std::exchange(own.is_best, false)) return false;
  own.has_kept = true;
  own.kept = own.newest.mean;
  return true;
}

void Returns::went_back(std::uint32_t brain) {
  Earned& own = brains_[brain];
  own.count = 0;
  own.fell = false;
  own.tried = true;
}

}  // namespace imprint::agent

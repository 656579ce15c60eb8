#include "plugin/agent/learn/training/curves.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace imprint::agent {

void Curves::Mean::add(double value) {
  if (!std::isfinite(value)) return;
  sum += value;
  ++count;
}

float Curves::Mean::take() {
  const float mean = count > 0 ? static_cast<float>(sum / count) : CurveRow::kNone;
  *this = {};
  return mean;
}

void Curves::earned(double sum, std::uint64_t steps) {
  return_.add(sum);
  length_.add(static_cast<double>(steps));
}

void Curves::learned(float loss, const std::array<float, kMetricCount>& metrics) {
  loss_.add(double{loss});
  for (std::size_t i = 0; i < kMetricCount; ++i) metrics_[i].add(double{metrics[i]});
  ++steps_;
}

void Curves::close_row(std::uint32_t per_step, const BrainCounts& counts) {
  constexpr std::uint32_t kMinibatches = 64;
  if (steps_ * per_step < kMinibatches) return;
  steps_ = 0;
  CurveRow row;
  row.wall_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  row.counters = counts.counters();
  row.used = counts.used;
  row.lost = counts.lost();
  row.mean_return = return_.take();
  row.mean_length = length_.take();
  row.loss = loss_.take();
  for (std::size_t i = 0; i < kMetricCount; ++i) row.metrics[i] = metrics_[i].take();
  const std::lock_guard lock(mutex_);
  ring_[rows_++ % kRows] = row;
}

std::uint64_t Curves::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

std::optional<CurveRow> Curves::row(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (number >= rows_ || rows_ - number > kRows) return std::nullopt;
  return ring_[number % kRows];
}

std::vector<CurveRow> Curves::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<CurveRow> found;
  for (std::uint64_t i = rows_ > kRows ? rows_ - kRows : 0; i < rows_; ++i) found.push_back(ring_[i % kRows]);
  return found;
}

}  // namespace imprint::agent

#include "engine-bridge/frame/cost_model.h"

#include <algorithm>

namespace imprint::bridge {
namespace {

constexpr float kSettledWeight = 0.125f;     // of a frame in the moving average
constexpr std::uint32_t kMeasuredWorth = 8;  // in observed frames
constexpr float kLeastPieceUs = 0.05f;       // a timestamp's resolution may say 0

}  // namespace

DeviceRates rates_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::discrete:
      return {3, 200000, 2000000};
    case DeviceKind::integrated:
      return {5, 30000, 300000};
    case DeviceKind::software:
      return {20, 4000, 10000};
    case DeviceKind::cpu:
      return {0.5f, 8000, 10000};
  }
  return {};
}

ProgramCost ProgramCost::guess(const WorkEstimate& work, const DeviceRates& rates) {
  ProgramCost cost;
  if (work.piece_count == 0) return cost;
  // The larger of both bounds: a kernel is limited by memory or by arithmetic.
  const float busy = std::max(static_cast<float>(work.bytes) / rates.bytes_per_us,
                              static_cast<float>(work.flops) / rates.flops_per_us);
  const float piece = rates.dispatch_us + busy / static_cast<float>(work.piece_count);
  cost.until_.reserve(work.piece_count + 1);
  for (std::uint32_t i = 0; i < work.piece_count; ++i) cost.until_.push_back(cost.until_.back() + piece);
  return cost;
}

ProgramCost ProgramCost::measured(std::span<const float> piece_us) {
  ProgramCost cost;
  cost.until_.reserve(piece_us.size() + 1);
  for (const float us : piece_us) cost.until_.push_back(cost.until_.back() + std::max(us, kLeastPieceUs));
  cost.observations_ = kMeasuredWorth;
  return cost;
}

std::uint32_t ProgramCost::fit(std::uint32_t begin, std::uint32_t end, float us) const {
  // The same arithmetic as range_us, so that both agree.
  const auto first = until_.begin() + begin + 1, last = until_.begin() + end + 1;
  const auto past =
      std::partition_point(first, last, [&](float until) { return (until - until_[begin]) * scale_ <= us; });
  return static_cast<std::uint32_t>(past - first);
}

void ProgramCost::correct(float predicted_us, float measured_us, float share) {
  if (!(predicted_us > 0) || !(measured_us > 0) || !(share > 0)) return;
  const float weight =
      std::max(kSettledWeight, 1.0f / static_cast<float>(++observations_)) * std::min(share, 1.0f);
  const bool settled = observations_ > kMeasuredWorth;
  const float ratio =
      std::clamp(measured_us / predicted_us, settled ? 0.25f : 0.01f, settled ? 4.0f : 100.0f);
  scale_ *= 1 + weight * (ratio - 1);
}

}  // namespace imprint::bridge

#include "plugin/agent/learn/samples/demonstration_memory.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace imprint::agent {

SampleLayout demonstration_layout(const BrainSpec& spec) {
  return SampleLayout::begin(spec).add(&SampleLayout::weight);
}

DemonstrationMemory::DemonstrationMemory(const BrainSpec& spec)
    : pretrained(spec.brain_count, 0),
      capacity_(spec.demonstration_capacity),
      width_(demonstration_layout(spec).width),
      rows_(std::size_t{spec.brain_count} * capacity_ * width_),
      next_(spec.brain_count, 0),
      filled_(spec.brain_count, 0) {}

void DemonstrationMemory::change() {
  static std::atomic<std::uint64_t> changes{0};
  version_ = ++changes;
}

std::span<float> DemonstrationMemory::add(std::uint32_t brain) {
  change();
  const auto capacity = static_cast<std::int32_t>(capacity_);
  const std::size_t row = std::size_t{brain} * capacity_ + static_cast<std::size_t>(next_[brain]);
  next_[brain] = (next_[brain] + 1) % capacity;
  filled_[brain] = std::min(filled_[brain] + 1, capacity);
  return std::span(rows_).subspan(row * width_, width_);
}

void DemonstrationMemory::clear() {
  change();
  std::ranges::fill(next_, 0);
  std::ranges::fill(filled_, 0);
  std::ranges::fill(pretrained, 0);
}

bool DemonstrationMemory::empty() const { return count() == 0; }

std::uint64_t DemonstrationMemory::count() const {
  return std::accumulate(filled_.begin(), filled_.end(), std::uint64_t{0});
}

std::span<const float> DemonstrationMemory::row(std::uint32_t brain, std::uint32_t index) const {
  const auto oldest =
      static_cast<std::uint32_t>(next_[brain]) + capacity_ - static_cast<std::uint32_t>(filled_[brain]);
  const std::size_t at = std::size_t{brain} * capacity_ + (oldest + index) % capacity_;
  return std::span(rows_).subspan(at * width_, width_);
}

}  // namespace imprint::agent

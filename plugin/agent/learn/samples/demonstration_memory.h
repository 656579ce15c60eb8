#pragma once
// Demonstrations of a brain that learns from rewards (BrainSpec::demonstration_capacity): on the host, and as
// an input of its learn program. Saved, in snapshots. Frame thread.
//
// P = brain_count, C = demonstration_capacity, W = width of demonstration_layout.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/zeroed_bytes.h"
#include "plugin/agent/learn/sample_layout.h"

namespace imprint::agent {

// observation | goal | choice per branch | continuous actions | weight
SampleLayout demonstration_layout(const BrainSpec& spec);

class DemonstrationMemory {
 public:
  DemonstrationMemory() = default;
  explicit DemonstrationMemory(const BrainSpec& spec);  // without demonstration_capacity it stays empty

  // The row of one more. A full memory loses its oldest.
  std::span<float> add(std::uint32_t brain);
  void clear();
  bool empty() const;
  std::uint64_t count() const;                           // of all brains
  std::span<const float> rows() const { return rows_; }  // [P * C, W]
  std::span<const std::int32_t> filled() const { return filled_; }
  std::span<const float> row(std::uint32_t brain, std::uint32_t index) const;  // 0: the oldest
  // [P] the row of each brain that its next one overwrites. Draws are by row, so files hold rows in place.
  std::span<const std::int32_t> next() const { return next_; }
  void set_next(std::uint32_t brain, std::int32_t next) { next_[brain] = next; }  // below the capacity

  // Changes with every change of the content: no other content has the same. 0: it never held any.
  std::uint64_t version() const { return version_; }

  // [P] minibatches that each brain has made before it was to learn from its own steps.
  std::vector<std::int32_t> pretrained;

 private:
  void change();

  std::uint32_t capacity_ = 0, width_ = 0;
  ZeroedVector<float> rows_;                 // those that hold nothing yet take no memory
  std::vector<std::int32_t> next_, filled_;  // [P]
  std::uint64_t version_ = 0;
};

}  // namespace imprint::agent

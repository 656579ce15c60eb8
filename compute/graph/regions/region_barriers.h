#pragma once
// Barriers between the stages of a row-local region.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Part of a workgroup's array of floats, or of ints.
struct SharedRange {
  std::int64_t begin, end;
  bool is_float;
};

// Shared memory that a stage accesses. summed: inputs of a product's sums, which it reads before it
// writes.
struct StageAccess {
  std::vector<SharedRange> summed, reads, writes, scratch;
  bool writes_late = false;  // after all its sums
};

// Sets RegionStage::joins_before: products whose invocations share terms wait at one barrier for all their
// sums, where none reads another's result. Per stage: the floats of its sums, 0 if invocations share no
// terms, and the latest stage that it reads.
void join_products(std::span<RegionStage> stages, std::span<const std::int64_t> scratch,
                   std::span<const std::int32_t> latest_reads, std::int64_t most_scratch);

// Adds a barrier if a stage reads what others wrote since the last barrier, or writes where others read or
// wrote. A stage that needs one no longer joins the stage before it.
void place_stage_barriers(std::span<RegionStage> stages, std::span<const StageAccess> accesses);

}  // namespace imprint::graph

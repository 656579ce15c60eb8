#include "compute/graph/regions/region_barriers.h"

#include <algorithm>

namespace imprint::graph {
namespace {

bool overlap(const std::vector<SharedRange>& ranges, const std::vector<SharedRange>& others) {
  return std::ranges::any_of(others, [&](const SharedRange& range) {
    return std::ranges::any_of(ranges, [&](const SharedRange& other) {
      return other.is_float == range.is_float && other.begin < range.end && range.begin < other.end;
    });
  });
}

void append(std::vector<SharedRange>& to, const std::vector<SharedRange>& ranges) {
  to.insert(to.end(), ranges.begin(), ranges.end());
}

}  // namespace

void join_products(std::span<RegionStage> stages, std::span<const std::int64_t> scratch,
                   std::span<const std::int32_t> latest_reads, std::int64_t most_scratch) {
  const auto shares_terms = [](const RegionStage& stage) {
    return stage.kind == RegionStage::Kind::product && stage.parts > 1;
  };
  std::size_t first = 0;
  std::int64_t sum = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].joins_before = s > 0 && shares_terms(stages[s]) && shares_terms(stages[s - 1]) &&
                             sum + scratch[s] <= most_scratch &&
                             latest_reads[s] < static_cast<std::int32_t>(first);
    if (!stages[s].joins_before) {
      first = s;
      sum = 0;
    }
    sum += scratch[s];
  }
}

void place_stage_barriers(std::span<RegionStage> stages, std::span<const StageAccess> accesses) {
  std::vector<SharedRange> read, written;  // since the last barrier
  // Of stages that wait at one barrier: what they sum, and what was accessed since the barrier before them.
  std::vector<SharedRange> summed, read_before, written_before;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    RegionStage& stage = stages[s];
    const StageAccess& own = accesses[s];
    std::vector<SharedRange> reads = own.reads;
    if (!own.writes_late) append(reads, own.summed);
    stage.barrier_before = overlap(written, own.summed) || overlap(written, reads) ||
                           overlap(written, own.writes) || overlap(written, own.scratch) ||
                           overlap(read, own.writes) || overlap(read, own.scratch);
    if (stage.joins_before)
      stage.barrier_before = stage.barrier_before || overlap(written_before, own.summed) ||
                             overlap(written_before, own.scratch) || overlap(read_before, own.scratch) ||
                             overlap(summed, own.scratch);
    stage.joins_before = stage.joins_before && !stage.barrier_before;
    stage.barrier_within = own.writes_late && stage.parts == 1 && overlap(own.summed, own.writes);
    if (!stage.joins_before) {
      read_before = stage.barrier_before ? std::vector<SharedRange>() : read;
      written_before = stage.barrier_before ? std::vector<SharedRange>() : written;
      summed.clear();
      if (stage.barrier_before || stage.barrier_within || stage.parts > 1) {
        read.clear();
        written.clear();
      }
    }
    append(summed, own.summed);
    if (own.writes_late && stage.parts == 1 && !stage.barrier_within) append(reads, own.summed);
    append(reads, own.scratch);
    append(read, reads);
    append(written, own.writes);
  }
}

}  // namespace imprint::graph

#pragma once
// Finds the nodes of row-local regions, before the folds over their rows are split.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/schedule/region.h"

namespace imprint::graph {

// A node's role in its region: computed per row, or a fold over the rows.
enum class RowRole : std::uint8_t { outside, row, fold };

struct RowRegions {
  std::vector<RegionNodes> regions;
  // Per node.
  std::vector<RowRole> role;
  std::vector<std::int32_t> region_of, phase;
  std::vector<std::int32_t> row_axis, group_axis;  // -1: none
  std::vector<std::string> notes;                  // what stays outside regions, and why
};

RowRegions find_row_regions(const Graph& graph, const FusionRequest& request, const FusionOptions& options,
                            const RegionLimits& limits);

}  // namespace imprint::graph

#pragma once
// Groups of values around folds over rows: a softmax, a layer norm, their derivatives. The axes before the
// folded innermost axes are the rows. Each value has the rows' length or one number per row, and each row
// depends on that row alone. One kernel reads a row once and keeps it in registers through all its folds.
// Groups are smaller than regions (region.h), have no contractions, and use only what regions leave.

#include <cstdint>
#include <string>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/region.h"

namespace imprint::graph {

struct RowGroup {
  Shape shape;           // of the values that have the rows' length
  int first_folded = 0;  // axes from here on are folded
  std::int32_t phase = 0;
};

struct RowGroups {
  std::vector<std::int32_t> group_of;  // per node, -1: none
  std::vector<RowGroup> groups;
  std::vector<std::string> notes;  // what stays apart, and why
};

// No outside value both waits for a group and is waited for by it. Groups never wait for each other in a
// circle.
RowGroups find_row_groups(const Graph& graph, const RegionSplit& split, const FusionOptions& options);

}  // namespace imprint::graph

#pragma once
// Groups of values around folds over rows: a softmax, a layer norm, their derivatives. The rows are what lies
// in front of the folded innermost axes; the values are as long as the rows or one number a row, and each
// row's depend on that row alone. One kernel reads a row once and keeps it in registers through all of its
// folds. Smaller than regions (region.h), which have contractions, and looked for in what those leave.

#include <cstdint>
#include <vector>

#include "compute/graph/fusion_options.h"
#include "compute/graph/graph.h"
#include "compute/graph/region.h"

namespace imprint::graph {

struct RowGroup {
  Shape shape;           // of the values as long as the rows
  int first_folded = 0;  // axes from here on are folded
  std::int32_t phase = 0;
};

struct RowGroups {
  std::vector<std::int32_t> group_of;  // per node, -1: none
  std::vector<RowGroup> groups;
};

// No value outside a group both waits for it and is waited for by it, nor do groups wait for each other in a
// circle.
RowGroups find_row_groups(const Graph& graph, const RegionSplit& split, const FusionOptions& options);

}  // namespace imprint::graph

#pragma once
// Numbers that get memory in place of the values that are computed from them, and what else of row kernels
// gets memory.

#include <cstdint>
#include <vector>

#include "compute/graph/plan/uses.h"
#include "compute/graph/schedule/fusion_options.h"

namespace imprint::graph {

// A clipped gradient is the gradient times a factor, a function of a sum over all gradients. If the step that
// reads it also waits for another such number, such as whether all gradients are finite, it would be stored
// and read again. The factor is stored instead, at the same time. Others read their factors in their own
// kernel. materialized, forced, region_of, row_group_of: per node.
void keep_numbers(const Graph& graph, const std::vector<std::uint8_t>& forced,
                  const std::vector<std::int32_t>& region_of, const std::vector<std::int32_t>& row_group_of,
                  const FusionOptions& options, std::vector<std::uint8_t>& materialized);

// A value of a group that is `source`, a value outside of it, plus or minus a number of each row: such as the
// distance from the mean. Readers compute it again from both.
struct ShiftedValue {
  NodeIndex node = -1, source = -1;
};

// Marks in `memory` the values of row groups (row_folds.h) that consumers outside of the group read, except
// cheap functions of what is stored anyway. The result has no memory; it needs some if its source gets none.
std::vector<ShiftedValue> keep_row_values(const Graph& graph, const Uses& uses,
                                          const std::vector<std::uint8_t>& forced,
                                          const std::vector<std::int32_t>& region_of,
                                          const std::vector<std::int32_t>& row_group_of,
                                          std::vector<std::uint8_t>& memory);

}  // namespace imprint::graph

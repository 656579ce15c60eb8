#pragma once
// Row-local regions: the parts of a graph whose work is independent for each row of a batch (a network's
// forward pass, losses, the backward pass), found by what the axes are, whatever the network. One kernel
// takes a block of rows through a region; folds over the rows (weight gradients, sums of losses) leave one
// partial result a block, added in order of the blocks by what reads them.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/axes.h"
#include "compute/graph/fusion_options.h"
#include "compute/graph/fusion_request.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// How large a region's blocks may be. Key: the region's batch axis and phase, equal from one attempt to the
// next.
using RowBlockLimits = std::map<std::pair<AxisClass, std::int32_t>, std::int32_t>;

struct RegionNodes {
  AxisClass row_class = -1, group_class = -1;  // of the graph before the split
  std::int32_t phase = 0;
  std::int64_t rows = 0, groups = 1, blocks = 0;
  std::int32_t row_block = 0, turns = 1;
  bool may_turn = false;  // its sums over the rows fit into a workgroup's registers
  std::int32_t invocations = 0;
  std::string kernel;  // its signature
  std::vector<VariantChoice> choices;

  std::pair<AxisClass, std::int32_t> key() const { return {row_class, phase}; }
};

// The regions of a graph.
struct RegionMembers {
  std::vector<RegionNodes> regions;
  std::vector<std::int32_t> region_of;  // per node, -1: none
  std::vector<std::int32_t> row_axis;   // per node, -1: none, or a partial result
};
// Of the split graph.
struct RegionSplit : RegionMembers {
  std::vector<std::int32_t> group_axis;
  // What waits for a region's folds, or for a region from outside it, is of a later phase. Tasks made phase
  // by phase never wait in a circle.
  std::vector<std::int32_t> phase;
  std::vector<std::string> notes;  // what was left out of regions, and why
};

// Before anything is split.
RegionMembers find_regions(const Graph& graph, const FusionRequest& request, const FusionOptions& options);

// Whether a kernel could take the region through matrix units if its products read float16: a network's
// forward pass over many rows, with weights that fit into a workgroup's memory (kernels/region_matrix.h).
bool suits_matrix_units(const Graph& graph, const RegionMembers& members, std::int32_t region,
                        const FusionOptions& options);

// Finds the regions and splits every fold over the rows of one in two: partial results of blocks, and the sum
// of those. Renumbers the nodes.
RegionSplit split_regions(Graph& graph, FusionRequest& request, const FusionOptions& options,
                          const RowBlockLimits& limits);

// Behind split_regions and split_deep_products: sums over sums of partial results leave partial results of
// their own, one a workgroup of a column fold.
void split_tails(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options);

// Orders a region task's members into stages and gives them places in shared memory. False when a workgroup
// has not enough of it.
bool plan_region(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
                 const FusionOptions& options, Task& task, Region& region);

}  // namespace imprint::graph

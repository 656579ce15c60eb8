#pragma once
// Row-local regions: parts of a graph whose work is independent for each row of a batch, such as a network's
// forward pass, losses and backward pass. The search uses axis classes only and works for any network. One
// kernel takes a block of rows through a region. Folds over the rows (weight gradients, sums of losses) leave
// one partial result per block. Readers add these in block order.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/axes.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Limits of a region that earlier attempts at a schedule have met.
struct RegionLimit {
  std::int32_t parts = 1;                           // regions that its nodes are cut into, in order
  std::map<std::int32_t, std::int32_t> row_blocks;  // per part, if known: the largest block of rows; 0: none
};
// Key: the region's batch axis and its phase before cuts, which stay equal between attempts.
using RegionLimits = std::map<std::pair<AxisClass, std::int32_t>, RegionLimit>;

struct RegionNodes {
  AxisClass row_class = -1, group_class = -1;  // axes of the graph before the split
  std::int32_t phase = 0;
  std::int32_t uncut_phase = 0, part = 0, parts = 1;  // its phase before cuts, and which part of that region
  std::int64_t nodes = 0, products = 0;               // a part with several products can be cut further
  std::int64_t rows = 0, groups = 1, blocks = 0;
  std::int32_t row_block = 0, turns = 1;
  bool may_turn = false;  // its sums over the rows fit into a workgroup's registers
  std::int32_t invocations = 0;
  std::string kernel;  // its signature
  std::vector<VariantChoice> choices;

  std::pair<AxisClass, std::int32_t> uncut() const { return {row_class, uncut_phase}; }
};

// The regions of a graph.
struct RegionMembers {
  std::vector<RegionNodes> regions;
  std::vector<std::int32_t> region_of;  // per node, -1: none
  std::vector<std::int32_t> row_axis;   // per node, -1: none, or a partial result
};
// The regions of the split graph.
struct RegionSplit : RegionMembers {
  std::vector<std::int32_t> group_axis;
  // Phase of each node. A node that waits for a region's folds, or waits for a region from outside it, has a
  // later phase. Tasks made phase by phase never wait in a circle.
  std::vector<std::int32_t> phase;
  std::vector<std::string> notes;  // what stays outside regions, and why
};

// Call before any split.
RegionMembers find_regions(const Graph& graph, const FusionRequest& request, const FusionOptions& options);

// Whether a kernel could run the region on matrix units if its products read float16. That needs a forward
// pass over many rows whose weights fit into a workgroup's memory (kernels/region_matrix.h).
// nodes: all that are in the region.
bool suits_matrix_units(const Graph& graph, const RegionMembers& members, std::int32_t region,
                        std::span<const NodeIndex> nodes, const FusionOptions& options);

// Finds the regions and splits every fold over a region's rows in two: partial results per block, and their
// sum. Renumbers the nodes.
RegionSplit split_regions(Graph& graph, FusionRequest& request, const FusionOptions& options,
                          const RegionLimits& limits);

// Call after split_regions and split_deep_products. Sums over sums of partial results then leave their own
// partial results, one per workgroup of a column fold.
void split_tails(Graph& graph, FusionRequest& request, RegionSplit& split, const FusionOptions& options);

// Working memory for the plans of all regions of a schedule, so that each plan costs what its region has.
struct RegionScratch {
  std::vector<std::int32_t> stage_of, last_reader;  // per node; -1 between plans
  std::vector<std::vector<NodeIndex>> consumers;    // of the graph, once a plan has asked for them
  bool is_too_large = false;  // Region::row_block was lowered to what could fit; 0: not even one row
};

// Orders a region task's members into stages and places them in shared memory. Returns false if a workgroup
// lacks shared memory.
bool plan_region(const Graph& graph, const Schedule& schedule, const RegionSplit& split,
                 const FusionOptions& options, RegionScratch& scratch, Task& task, Region& region);

}  // namespace imprint::graph

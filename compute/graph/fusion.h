#pragma once
// From a graph to kernels. Four decisions, each pure arithmetic:
//   0. which nodes form row-local regions (region.h), and which around folds over rows are computed with
//   these (row_folds.h), each one kernel; which
//      products and folds are taken in stretches of their terms (product_split.h, fold_split.h); the rest of
//      the page is about what is left;
//   1. which values get memory: those whose repeated evaluation inside their consumers would cost more than a
//   dispatch, or would make one
//      invocation work longer than a dispatch takes (cost.cpp's rules); everything else is computed inside
//      the kernels that use it, views by index arithmetic alone;
//   2. which values share a kernel: those with equal element counts that are computed at the same linear
//   index and wait for nothing later;
//   3. what runs together: a kernel's level is one more than the highest level it waits for; updates in place
//   wait for all other readers.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

struct FusionOptions {
  bool fuse = true;  // false: every operation but views gets memory and a kernel of its own
  double recompute_limit =
      300e3;  // operations that may be spent on evaluating a value again rather than giving it memory
  double serial_limit = 1024;  // operations of one invocation, past which the values that it folds are
                               // computed ahead, in parallel
  std::int64_t group_fold_length = 32;  // folds at least this long with few outputs get a workgroup an output
  std::int64_t group_fold_outputs = 16384;
  std::int64_t column_fold_length = 24;  // reductions over outermost axes at least this long go by columns
  std::int64_t product_operations = 1 << 20;  // multiply-adds from which a contraction is computed by tiles
  bool matrix_units = false;                  // whether products of float16 may run on them
  bool matrix_tiles =
      false;  // whether these choose their tile: costs were measured with GL_KHR_cooperative_matrix
  bool matrix_workgroups = false;  // whether these may have matrices of a workgroup
  bool narrow_products = false;    // mixed precision: see narrow_products.h
  double product_turn_operations =
      0;  // that a turn of a tile costs each invocation beside its own: what it saves at barriers
  std::int32_t node_limit = 400;  // nodes computed inside one value, so that shaders stay compilable

  // Rows that a kernel keeps in registers through their folds.
  bool row_folds = true;
  std::int64_t row_fold_least = 32;  // elements of a row
  std::int64_t row_fold_most = 16384;
  std::int64_t row_fold_elements = 1 << 14;  // of all rows, fewer of which are not worth it

  // Folds with fewer outputs than the device has room for are split.
  std::int64_t fill_groups = 1024;  // workgroups that fill the device
  std::int64_t fill_invocations = 1 << 18;

  double cheap_combination = 256;  // operations of one invocation that are never worth a dispatch: a scalar
                                   // so cheap is computed where it is used
  bool tails = true;               // sums of partial results leave partial results of the sums over them

  // Row-local regions. The defaults are what every Vulkan device has.
  bool regions = true;
  std::int64_t region_groups = 128;       // workgroups that fill the device
  std::int64_t region_fold_groups = 256;  // the same where partial results are left and weights are shared,
                                          // as long as that leaves eight rows each
  std::int64_t region_rows = 32;          // most rows of a workgroup
  std::int64_t region_fold_rows =
      4;  // least rows where partial results are left; half of it where a workgroup leaves few
  std::int64_t region_few_partials = 1 << 14;
  std::int64_t region_partial_bytes = 768ll << 20;  // most memory of partial results
  std::int32_t region_invocations = 128;
  std::int64_t region_shared_bytes = 16384;
  std::int64_t region_resident_bytes =
      24576;  // of shared memory, up to which a multiprocessor has room for two workgroups
  std::int64_t region_load_rows =
      16;  // most rows of a workgroup that copies weights into shared memory first; 0: none does
  std::int64_t region_narrow_rows = 4096;  // from which on a region of narrowed products runs on matrix units
  // Products of more weights than one and at least the multiply-adds of the other are worth kernels of their
  // own, whatever that costs in dispatches.
  std::int64_t region_weights = 1 << 15;
  std::int64_t region_operations = 1 << 30;
  bool region_vectors = true;       // four floats at a time
  double region_serial_limit = 48;  // operations of one invocation between two barriers, past which what it
                                    // folds is a stage of its own

  // Workgroups (workgroups.h), and what goes before all estimates (variants.h).
  std::int32_t fold_invocations = 64;      // of a workgroup that shares folds
  std::int64_t row_lane_elements = 8;      // of a row, that one lane takes
  std::int32_t map_invocations = 64;       // of a workgroup of a large map
  std::int32_t most_invocations = 128;     // that a workgroup may have
  const VariantTable* variants = nullptr;  // measured on the device; lives as long as the call; null: none
};

// What a program leaves behind, by graph root.
struct GraphOutput {
  NodeIndex node = -1;
};
struct GraphUpdate {
  std::int32_t variable = -1;  // position in `variables`
  NodeIndex value = -1;
  NodeIndex rows = -1;  // >= 0: by rows
  NodeIndex own_rows =
      -1;  // the same numbers for a kernel that may not wait for them, see early_reads.h; -1: none
};

struct FusionRequest {
  std::vector<GraphOutput> outputs;
  std::vector<GraphUpdate> updates;
  std::vector<std::shared_ptr<VariableState>> variables;  // all that are read or updated
  std::vector<NodeIndex> inputs;                          // node of each program input; -1 when unused

  void renumber(const std::vector<NodeIndex>& index);  // after the graph's nodes: index[old]
};

// Renumbers the nodes of graph and request where it splits folds (region.h). Errors: invalid_argument for an
// input node that is not in the request.
Result<Schedule> fuse(Graph& graph, FusionRequest& request, const FusionOptions& options);

// Number of elements folded into one output element by a reduction, contraction or scatter; 1 for everything
// else.
std::int64_t fold_length(const Graph& graph, NodeIndex index);

// Rough operations to compute one element of the node from its inputs.
double op_cost(const Graph& graph, NodeIndex index);

}  // namespace imprint::graph

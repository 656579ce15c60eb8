#pragma once
// From a graph to kernels. Three decisions, each pure arithmetic:
//   1. which values get memory: those whose repeated evaluation inside their consumers would cost more than a dispatch, or would make one
//      invocation work longer than a dispatch takes (cost.cpp's rules); everything else is computed inside the kernels that use it, views by index arithmetic alone;
//   2. which values share a kernel: those with equal element counts that are computed at the same linear index and wait for nothing later;
//   3. what runs together: a kernel's level is one more than the highest level it waits for; updates in place wait for all other readers.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint {

struct FusionOptions {
  bool fuse = true;                      // false: every operation but views gets memory and a kernel of its own
  double recompute_limit = 300e3;        // operations that may be spent on evaluating a value again rather than giving it memory
  double serial_limit = 1024;            // operations of one invocation, past which the values that it folds are computed ahead, in parallel
  std::int64_t group_fold_length = 192;  // folds at least this long with few outputs get a workgroup an output
  std::int64_t group_fold_outputs = 16384;
  std::int64_t matmul_tile_operations = 1 << 22;  // multiply-adds from which a matmul gets tiles
  std::int32_t node_limit = 400;         // nodes computed inside one value, so that shaders stay compilable
};

// What a program leaves behind, by graph root.
struct GraphOutput { NodeIndex node = -1; };
struct GraphUpdate {
  std::int32_t variable = -1;   // position in `variables`
  NodeIndex value = -1;
  NodeIndex rows = -1;          // >= 0: by rows
};

struct FusionRequest {
  std::vector<GraphOutput> outputs;
  std::vector<GraphUpdate> updates;
  std::vector<std::shared_ptr<VariableState>> variables;  // all that are read or updated
  std::vector<NodeIndex> inputs;                          // node of each program input; -1 when unused
};

// Errors: invalid_argument for an input node that is not in the request.
Result<Schedule> fuse(const Graph& graph, const FusionRequest& request, const FusionOptions& options);

// Number of elements folded into one output element by a reduction, contraction or scatter; 1 for everything else.
std::int64_t fold_length(const Graph& graph, NodeIndex index);

// Rough operations to compute one element of the node from its inputs.
double op_cost(const Graph& graph, NodeIndex index);

}  // namespace imprint

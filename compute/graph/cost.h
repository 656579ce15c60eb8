#pragma once
// Which values deserve memory: an estimate of the work of evaluating each node again inside its consumers.

#include <cstdint>
#include <vector>

#include "compute/graph/fusion_options.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule.h"

namespace imprint::graph {

// Number of elements folded into one output element by a reduction, contraction or scatter; 1 for other
// operations.
std::int64_t fold_length(const Graph& graph, NodeIndex index);

// Operations that compute one element of the node from its inputs, roughly.
double op_cost(const Graph& graph, NodeIndex index);

// Elements of input `slot` evaluated for each evaluated element of the node.
double evaluations_per_element(const Graph& graph, NodeIndex index, std::size_t slot);

// Whether the node's memory exists before any task runs.
inline bool is_memory_leaf(const GraphNode& node) {
  return node.op == Op::constant || node.op == Op::input || node.op == Op::variable;
}

// Whether the node folds the innermost axes of its input, so that what it folds lies together.
bool folds_innermost(const Graph& graph, NodeIndex index);

// Whether a long fold of the node is better spread over a workgroup than left to one invocation an element.
bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options);
// Whether a reduction over outermost axes is better given to workgroups by neighbouring outputs, so that
// lanes read neighbouring elements.
bool wants_columns(const Graph& graph, NodeIndex index, const FusionOptions& options);
bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options);

// Whether the node is one short sum of partial results, which the workgroup of a map folds once for all its
// invocations.
bool wants_lanes(const Graph& graph, NodeIndex index);

// Floating-point operations (transcendental functions counted as one) of evaluating one element of the node
// down to memory.
double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                              NodeIndex index);

// The same of all that a task computes.
double task_operations(const Graph& graph, const Schedule& schedule, const Task& task);

// Per node: 1 when it gets memory, in a region the memory of its workgroup. `forced`: nodes that must (what a
// program leaves behind). region_of, row_group_of: per node, -1 outside of all.
std::vector<std::uint8_t> choose_materialized(const Graph& graph, const std::vector<std::uint8_t>& forced,
                                              const std::vector<std::int32_t>& region_of,
                                              const std::vector<std::int32_t>& row_group_of,
                                              const FusionOptions& options);

}  // namespace imprint::graph

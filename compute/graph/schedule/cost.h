#pragma once
// Chooses which values get memory. Estimates the work of evaluating each node again inside its consumers.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Number of elements that a reduction, contraction or scatter folds into one output element; 1 for other
// operations.
std::int64_t fold_length(const Graph& graph, NodeIndex index);

// Approximate operations to compute one element of the node from its inputs.
double op_cost(const Graph& graph, NodeIndex index);

// Elements of input `slot` evaluated for each evaluated element of the node.
double evaluations_per_element(const Graph& graph, NodeIndex index, std::size_t slot);

// Whether the node's memory exists before any task runs.
inline bool is_memory_leaf(const GraphNode& node) {
  return node.op == Op::constant || node.op == Op::input || node.op == Op::variable;
}

// Whether the node must not share a kernel with other operations (FusionOptions::apart). Views have none.
inline bool stays_apart(const GraphNode& node, const FusionOptions& options) {
  return options.apart && node.kind() != OpKind::view && options.apart->contains(node.source.get());
}

// Whether the node folds the innermost axes of its input: the folded elements are then contiguous.
bool folds_innermost(const Graph& graph, NodeIndex index);

// Whether a workgroup should share a long fold of the node; otherwise one invocation computes each element.
bool wants_group(const Graph& graph, NodeIndex index, const FusionOptions& options);
// Whether each workgroup should reduce several neighbouring outputs of a reduction over outermost axes. Lanes
// then read neighbouring elements.
bool wants_columns(const Graph& graph, NodeIndex index, const FusionOptions& options);
// Whether tiles of such a product are full enough, or its terms can be split over many of them.
bool fills_tiles(std::int64_t rows, std::int64_t columns, std::int64_t terms, const FusionOptions& options);
bool wants_tiles(const Graph& graph, NodeIndex index, const FusionOptions& options);

// Whether the node is one short sum of partial results. The workgroup of a map then folds it once for all its
// invocations.
bool wants_lanes(const Graph& graph, NodeIndex index);

// Per node: 1 for a float32 pad of a computed value that only windows read, and no product behind them: such
// as that of a pool or of a depthwise convolution.
std::vector<std::uint8_t> pads_of_windows(const Graph& graph);

// Floating-point operations to evaluate one element of the node down to memory. A transcendental function
// counts as one.
double operations_per_element(const Graph& graph, const std::vector<std::uint8_t>& materialized,
                              NodeIndex index);

// Floating-point operations of everything that a task computes.
double task_operations(const Graph& graph, const Schedule& schedule, const Task& task);
// The task's part of ProgramStats::work: 1 is the time of one addition.
double task_work(const Graph& graph, const Schedule& schedule, const Task& task);

// Per node: 1 when it gets memory; in a region that is its workgroup's shared memory. `forced`: nodes that
// must have memory because the program stores them. region_of, row_group_of: per node, -1: none.
std::vector<std::uint8_t> choose_materialized(const Graph& graph, const std::vector<std::uint8_t>& forced,
                                              const std::vector<std::int32_t>& region_of,
                                              const std::vector<std::int32_t>& row_group_of,
                                              const FusionOptions& options);

}  // namespace imprint::graph

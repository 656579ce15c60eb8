#pragma once
// Constants that are rounded to float16, arranged or made literals when a program is planned instead of in
// each run.

#include <optional>
#include <span>
#include <vector>

#include "compute/graph/graph.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// The elements of a float32 constant behind reshapes and permutations. order: the axis at each position;
// none: the node's own. Nothing for other nodes.
std::optional<std::vector<float>> constant_elements(const Graph& graph, NodeIndex index,
                                                    std::span<const int> order = {});

// A constant of these elements. source: names it.
GraphNode constant_node(const std::vector<float>& elements, const Shape& shape, const NodeRef& source);

// The same, rounded to float16.
GraphNode narrow_constant(const std::vector<float>& elements, const Shape& shape, const NodeRef& source);

// Constants of one element are literals of the kernels that read them: such as the bounds of a Clip.
void write_scalars_as_literals(Graph& graph);

// Operands that kernels would arrange in each run, such as the weights of a convolution in the order of its
// terms, become constants where they are views of constants. Call once tasks are in order: their positions
// change. Memory stays the same if no task reads a constant in its old order.
void arrange_constants(Graph& graph, Schedule& schedule);

}  // namespace imprint::graph

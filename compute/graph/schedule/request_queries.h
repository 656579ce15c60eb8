#pragma once
// Questions about a request: whether its program learns, and which values its caller receives.

#include "compute/graph/schedule/fusion_request.h"

namespace imprint::graph {

// Whether the program may be a step of learning: it updates rows or what it reads, or it updates something
// and multiplies by a variable, as weights are. Other updates only hand over results, such as those of a
// model with constant weights to shared tensors.
bool learns(const Graph& graph, const FusionRequest& request);

// Whether the program's caller receives the value: an output, or what a variable becomes.
bool is_result(const FusionRequest& request, NodeIndex node);

}  // namespace imprint::graph

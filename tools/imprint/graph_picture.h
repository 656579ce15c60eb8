#pragma once
// A picture of a model's graph, as SVG.

#include <string>

#include "compute/model/onnx/format/proto.h"

namespace imprint::tools {

// Boxes are operators, in rows by their distance from the inputs; lines are values. Graphs inside of nodes
// are left out: their nodes name them. Time and length O(n log n) for n nodes and uses.
std::string graph_picture(const onnx::Graph& graph);

}  // namespace imprint::tools

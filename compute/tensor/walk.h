#pragma once
// A walk over the nodes of a graph. Internal.

#include <functional>
#include <span>
#include <vector>

#include "compute/tensor/tensor.h"

namespace imprint::tensor {

// The nodes that the outputs depend on, inputs before what uses them. Without recursion: training graphs are
// deep. enters: whether the inputs of a node are visited too.
std::vector<const NodeRef*> nodes_in_order(std::span<const Tensor> outputs,
                                           const std::function<bool(const Node&)>& enters);

}  // namespace imprint::tensor

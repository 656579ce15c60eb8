#pragma once
// Turns a graph into kernels, by pure arithmetic:
// 0. Nodes form row-local regions (region.h) and groups around folds over rows (row_folds.h), one kernel
//    each. Large products and folds are split into stretches (product_split.h, fold_split.h).
// 1. A value gets memory if evaluating it again inside its consumers costs more than a dispatch. It also gets
//    memory if one invocation would work longer than a dispatch takes (cost.cpp). The kernels that use other
//    values compute them inline; views become index arithmetic.
// 2. Values share a kernel if they have equal element counts, are computed at the same linear index and wait
//    for nothing later.
// 3. A kernel's level is one above the highest level that it waits for. In-place updates wait for all other
//    readers.

#include "compute/base/result.h"
#include "compute/graph/graph.h"
#include "compute/graph/schedule/fusion_options.h"
#include "compute/graph/schedule/fusion_request.h"
#include "compute/graph/schedule/schedule.h"

namespace imprint::graph {

// Renumbers the nodes of graph and request when it splits folds. After an error do not use either. Errors:
// invalid_argument for an input node that is not in the request.
Result<Schedule> fuse(Graph& graph, FusionRequest& request, const FusionOptions& options);

}  // namespace imprint::graph
